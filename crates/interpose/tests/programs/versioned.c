// A driver whose names have versions.
int cuInit(unsigned flags);
int cuInit(unsigned flags) { return (int)flags; }
int cuMemAlloc_v2(unsigned long long *address, unsigned long bytes);
int cuMemAlloc_v2(unsigned long long *address, unsigned long bytes) { return address && bytes; }
