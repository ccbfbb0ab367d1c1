/* The driver's own function of a name, read from the driver's table of symbols: no look-up that a library in
 * front of the driver could answer. */
#ifndef PAST_H
#define PAST_H

#include "program.h"

#include <elf.h>
#include <link.h>

/* How many symbols a table has: one more than the last that its hash table lists. */
static inline size_t symbol_count(const uint32_t *hash) {
  uint32_t buckets = hash[0], first = hash[1], words = hash[2], last = 0;
  const uint32_t *bucket = hash + 4 + 2 * words, *chain = bucket + buckets;
  for (uint32_t at = 0; at < buckets; at++)
    if (bucket[at] > last) last = bucket[at];
  if (last < first) return first;
  while ((chain[last - first] & 1) == 0) last++;
  return last + 1;
}

struct table {
  const Elf64_Sym *symbols;
  const char *strings;
  size_t count;
  char *base;
};

/* All names that the driver exports. */
static inline struct table driver_symbols(void) {
  struct link_map *map = NULL;
  void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  struct table table = {NULL, NULL, 0, NULL};
  const uint32_t *hash = NULL;
  CHECK(driver != NULL && dlinfo(driver, RTLD_DI_LINKMAP, &map) == 0);
  for (const Elf64_Dyn *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
    if (entry->d_tag == DT_SYMTAB) table.symbols = (const Elf64_Sym *)entry->d_un.d_ptr;
    if (entry->d_tag == DT_STRTAB) table.strings = (const char *)entry->d_un.d_ptr;
    if (entry->d_tag == DT_GNU_HASH) hash = (const uint32_t *)entry->d_un.d_ptr;
  }
  CHECK(table.symbols != NULL && table.strings != NULL && hash != NULL);
  table.count = symbol_count(hash);
  table.base = (char *)map->l_addr;
  return table;
}

static inline void *past(const char *name) {
  struct table table = driver_symbols();
  for (size_t at = 0; at < table.count; at++)
    if (table.symbols[at].st_value != 0 && strcmp(table.strings + table.symbols[at].st_name, name) == 0)
      return table.base + table.symbols[at].st_value;
  fail(__FILE__, __LINE__, "the driver has no %s", name);
}

#endif
