// Names that begin like the driver's, or luma's, and are others'.
#define NAME(name)                                                                                             \
  void name(void);                                                                                             \
  void name(void) {}
NAME(cublasCreate_v2)
NAME(cudnnCreate)
NAME(curl_easy_init)
NAME(cuMemAlloc_v)
NAME(cuMemAlloc_v22)
NAME(cuMemAllocate)
NAME(cumemalloc_v2)
NAME(cuMemAlloc_v2_ptsz)
NAME(luma)
NAME(luma_alloc_of_another)
