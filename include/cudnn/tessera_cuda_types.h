// The few CUDA types in cuDNN's interface: CUDA's own where its headers are found, otherwise declarations of the same
// types, so that programs compile on machines without a CUDA toolkit.
#ifndef TESSERA_CUDA_TYPES_H_
#define TESSERA_CUDA_TYPES_H_

#ifdef __has_include
#if __has_include(<cuda_runtime_api.h>) && __has_include(<library_types.h>)
#define TESSERA_HAS_CUDA_HEADERS
#endif
#endif

#ifdef TESSERA_HAS_CUDA_HEADERS
#include <cuda_runtime_api.h>
#include <library_types.h>
#else
typedef struct CUstream_st* cudaStream_t;
typedef struct CUgraph_st* cudaGraph_t;
typedef enum libraryPropertyType_t { MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL } libraryPropertyType;
#endif

#endif
