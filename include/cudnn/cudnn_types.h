// What every part of cuDNN's interface shares: statuses, the handle, data types and the modes that both the graph API
// and the older calls use.
#ifndef CUDNN_TYPES_H_
#define CUDNN_TYPES_H_

#include <stddef.h>
#include <stdint.h>

#include "cudnn_version.h"
#include "tessera_cuda_types.h"

// The calling convention; platforms with 64 bits have one.
#ifndef CUDNNWINAPI
#define CUDNNWINAPI
#endif

// What version 9 has deprecated still works. A program that defines CUDNN_WARN_DEPRECATED is warned of its use.
#if defined(CUDNN_WARN_DEPRECATED) && defined(__GNUC__)
#define CUDNN_DEPRECATED __attribute__((deprecated))
#define CUDNN_DEPRECATED_ENUM __attribute__((deprecated))
#else
#define CUDNN_DEPRECATED
#define CUDNN_DEPRECATED_ENUM
#endif

// Tensors have at most this many dimensions.
#define CUDNN_DIM_MAX 8

// The state of the library for one device: stream, caches, last error. Used by one thread at a time.
typedef struct cudnnContext* cudnnHandle_t;

// How a call ended. Thousands are categories, the rest says more.
typedef enum {
  CUDNN_STATUS_SUCCESS = 0,
  CUDNN_STATUS_NOT_INITIALIZED = 1001,              // no device, or a descriptor read before it was finalized
  CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH = 1002,  // parts of different versions
  CUDNN_STATUS_SERIALIZATION_VERSION_MISMATCH = 1003,
  CUDNN_STATUS_DEPRECATED = 1004,
  CUDNN_STATUS_LICENSE_ERROR = 1005,
  CUDNN_STATUS_RUNTIME_IN_PROGRESS = 1006,
  CUDNN_STATUS_RUNTIME_FP_OVERFLOW = 1007,
  CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED = 1008,
  CUDNN_STATUS_BAD_PARAM = 2000,  // the caller's mistake; more in cudnnGetLastErrorString
  CUDNN_STATUS_BAD_PARAM_NULL_POINTER = 2002,
  CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER = 2003,
  CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED = 2004,
  CUDNN_STATUS_BAD_PARAM_OUT_OF_BOUND = 2005,
  CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT = 2006,
  CUDNN_STATUS_BAD_PARAM_STREAM_MISMATCH = 2007,
  CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH = 2008,
  CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES = 2009,
  CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE = 2010,
  CUDNN_STATUS_BAD_PARAM_CUDA_GRAPH_MISMATCH = 2011,
  CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE = 2012,
  CUDNN_STATUS_NOT_SUPPORTED = 3000,  // legal, but no engine does it
  CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN = 3001,
  CUDNN_STATUS_NOT_SUPPORTED_SHAPE = 3002,
  CUDNN_STATUS_NOT_SUPPORTED_DATA_TYPE = 3003,
  CUDNN_STATUS_NOT_SUPPORTED_LAYOUT = 3004,
  CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDA_DRIVER = 3005,
  CUDNN_STATUS_NOT_SUPPORTED_INCOMPATIBLE_CUDART = 3006,
  CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH = 3007,
  CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING = 3008,
  CUDNN_STATUS_NOT_SUPPORTED_SUBLIBRARY_UNAVAILABLE = 3009,
  CUDNN_STATUS_NOT_SUPPORTED_SHARED_MEMORY_INSUFFICIENT = 3010,
  CUDNN_STATUS_NOT_SUPPORTED_PADDING = 3011,
  CUDNN_STATUS_NOT_SUPPORTED_BAD_LAUNCH_PARAM = 3012,
  CUDNN_STATUS_NOT_SUPPORTED_CUDA_GRAPH_NATIVE_API = 3013,
  CUDNN_STATUS_NOT_SUPPORTED_INVALID_DYNAMIC_SHAPE = 3014,
  CUDNN_STATUS_INTERNAL_ERROR = 4000,  // the library's mistake, or a lack of memory
  CUDNN_STATUS_INTERNAL_ERROR_COMPILATION_FAILED = 4001,
  CUDNN_STATUS_INTERNAL_ERROR_UNEXPECTED_VALUE = 4002,
  CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED = 4003,
  CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED = 4004,
  CUDNN_STATUS_INTERNAL_ERROR_BAD_LAUNCH_PARAM = 4005,
  CUDNN_STATUS_INTERNAL_ERROR_TEXTURE_CREATION_FAILED = 4006,
  CUDNN_STATUS_EXECUTION_FAILED = 5000,  // a kernel or another library failed
  CUDNN_STATUS_EXECUTION_FAILED_CUDA_DRIVER = 5001,
  CUDNN_STATUS_EXECUTION_FAILED_CUBLAS = 5002,
  CUDNN_STATUS_EXECUTION_FAILED_CUDART = 5003,
  CUDNN_STATUS_EXECUTION_FAILED_CURAND = 5004,
  // Deprecated names.
  CUDNN_STATUS_VERSION_MISMATCH CUDNN_DEPRECATED_ENUM = CUDNN_STATUS_SUBLIBRARY_VERSION_MISMATCH,
  CUDNN_STATUS_INVALID_VALUE CUDNN_DEPRECATED_ENUM = 2001,
  CUDNN_STATUS_ARCH_MISMATCH CUDNN_DEPRECATED_ENUM = CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH,
  CUDNN_STATUS_RUNTIME_PREREQUISITE_MISSING CUDNN_DEPRECATED_ENUM =
      CUDNN_STATUS_NOT_SUPPORTED_RUNTIME_PREREQUISITE_MISSING,
  CUDNN_STATUS_ALLOC_FAILED CUDNN_DEPRECATED_ENUM = CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED,
  CUDNN_STATUS_MAPPING_ERROR CUDNN_DEPRECATED_ENUM = CUDNN_STATUS_INTERNAL_ERROR_TEXTURE_CREATION_FAILED,
} cudnnStatus_t;
#define CUDNN_STATUS_FULL_ERROR_CODE(category, specific_err) ((cudnnStatus_t)((category) + (specific_err)))
#define CUDNN_STATUS_CATEGORY(full_error_code) ((full_error_code) / 1000 * 1000)
#define CUDNN_STATUS_SPECIFIC_ERROR(full_error_code) ((full_error_code) % 1000)

// For cudnnQueryRuntimeError, which is deprecated: whether to wait for the stream.
typedef struct cudnnRuntimeTag_t cudnnRuntimeTag_t CUDNN_DEPRECATED;
typedef enum {
  CUDNN_ERRQUERY_RAWCODE = 0,
  CUDNN_ERRQUERY_NONBLOCKING = 1,
  CUDNN_ERRQUERY_BLOCKING = 2
} cudnnErrQueryMode_t;

// Types of elements, and of computations.
typedef enum {
  CUDNN_DATA_FLOAT = 0,
  CUDNN_DATA_DOUBLE = 1,
  CUDNN_DATA_HALF = 2,  // IEEE, 16 bits
  CUDNN_DATA_INT8 = 3,
  CUDNN_DATA_INT32 = 4,
  CUDNN_DATA_INT8x4 CUDNN_DEPRECATED_ENUM = 5,  // vectors of 4 channels
  CUDNN_DATA_UINT8 = 6,
  CUDNN_DATA_UINT8x4 CUDNN_DEPRECATED_ENUM = 7,  // vectors of 4 channels
  CUDNN_DATA_INT8x32 CUDNN_DEPRECATED_ENUM = 8,  // vectors of 32 channels
  CUDNN_DATA_BFLOAT16 = 9,
  CUDNN_DATA_INT64 = 10,
  CUDNN_DATA_BOOLEAN = 11,  // one bit, 8 to a byte
  CUDNN_DATA_FP8_E4M3 = 12,
  CUDNN_DATA_FP8_E5M2 = 13,
  CUDNN_DATA_FAST_FLOAT_FOR_FP8 = 14,  // only to compute in: fp8 products, sums that may be less exact than float
  CUDNN_DATA_FP8_E8M0 = 15,            // powers of two, for block scales
  CUDNN_DATA_FP4_E2M1 = 16,            // two to a byte
  CUDNN_DATA_INT4 = 17,
  CUDNN_DATA_UINT4 = 18,
  CUDNN_DATA_UINT32 = 19,
  CUDNN_DATA_COMPLEX_FP32 = 20,
  CUDNN_DATA_COMPLEX_FP64 = 21,
  CUDNN_DATA_BYTE_BOOLEAN = 22,  // one byte
  CUDNN_DATA_FP8_E5M3 = 23,      // no sign, for block scales
} cudnnDataType_t;

// Which arithmetic a convolution or recurrent layer may use.
typedef enum {
  CUDNN_DEFAULT_MATH = 0,    // tensor cores where they take the types as they are; float may be rounded to TF32
  CUDNN_TENSOR_OP_MATH = 1,  // tensor cores
  CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION = 2,  // tensor cores, also with inputs rounded for them
  CUDNN_FMA_MATH = 3,                         // no tensor cores
} cudnnMathType_t;

// Deprecated: engines follow IEEE rules where they can; see CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP.
typedef enum {
  CUDNN_NOT_PROPAGATE_NAN CUDNN_DEPRECATED_ENUM = 0,
  CUDNN_PROPAGATE_NAN CUDNN_DEPRECATED_ENUM = 1
} cudnnNanPropagation_t;

// Orders of dimensions in memory. The last packs channels into vectors of 4 or 32.
typedef enum { CUDNN_TENSOR_NCHW = 0, CUDNN_TENSOR_NHWC = 1, CUDNN_TENSOR_NCHW_VECT_C = 2 } cudnnTensorFormat_t;

// Whether a filter is flipped (convolution in the strict sense) or not (what neural networks call convolution).
typedef enum { CUDNN_CONVOLUTION = 0, CUDNN_CROSS_CORRELATION = 1 } cudnnConvolutionMode_t;

// Whether the library may reorder int8x32 filters on its own. Deprecated with the convolution calls.
typedef enum { CUDNN_DEFAULT_REORDER = 0, CUDNN_NO_REORDER = 1 } cudnnReorderType_t CUDNN_DEPRECATED;

// What a reduction computes; AMAX is the largest magnitude, NORM1 and NORM2 are vector norms.
typedef enum {
  CUDNN_REDUCE_TENSOR_ADD = 0,
  CUDNN_REDUCE_TENSOR_MUL = 1,
  CUDNN_REDUCE_TENSOR_MIN = 2,
  CUDNN_REDUCE_TENSOR_MAX = 3,
  CUDNN_REDUCE_TENSOR_AMAX = 4,
  CUDNN_REDUCE_TENSOR_AVG = 5,
  CUDNN_REDUCE_TENSOR_NORM1 = 6,
  CUDNN_REDUCE_TENSOR_NORM2 = 7,
  CUDNN_REDUCE_TENSOR_MUL_NO_ZEROS = 8,  // zeros count as 1
} cudnnReduceTensorOp_t;

// Activations of the older calls; graphs have pointwise modes instead.
typedef enum {
  CUDNN_ACTIVATION_SIGMOID = 0,
  CUDNN_ACTIVATION_RELU = 1,
  CUDNN_ACTIVATION_TANH = 2,
  CUDNN_ACTIVATION_CLIPPED_RELU = 3,  // min(max(x, 0), coef)
  CUDNN_ACTIVATION_ELU = 4,           // alpha is coef
  CUDNN_ACTIVATION_IDENTITY = 5,      // only behind a convolution with bias
  CUDNN_ACTIVATION_SWISH = 6,
} cudnnActivationMode_t CUDNN_DEPRECATED;

// What CTC loss does with gradients of sequences that have too few steps for their labels: write zeros, or leave them
// alone.
typedef enum { CUDNN_CTC_ZERO_OOB_GRADIENTS = 0, CUDNN_CTC_SKIP_OOB_GRADIENTS = 1 } cudnnCTCGradMode_t;

// --- logging

typedef enum { CUDNN_SEV_FATAL = 0, CUDNN_SEV_ERROR = 1, CUDNN_SEV_WARNING = 2, CUDNN_SEV_INFO = 3 } cudnnSeverity_t;
// Bits for the mask of cudnnSetCallback. Fatal messages always arrive.
#define CUDNN_SEV_ERROR_EN (1U << CUDNN_SEV_ERROR)
#define CUDNN_SEV_WARNING_EN (1U << CUDNN_SEV_WARNING)
#define CUDNN_SEV_INFO_EN (1U << CUDNN_SEV_INFO)

// What is known about the call that a message is about.
typedef struct cudnnDebugStruct {
  unsigned int cudnn_version;
  cudnnStatus_t cudnnStatus;
  unsigned int time_sec;
  unsigned int time_usec;
  unsigned int time_delta;
  cudnnHandle_t handle;
  cudaStream_t stream;
  unsigned long long pid;
  unsigned long long tid;
  int cudaDeviceId;
  int reserved[15];
} cudnnDebug_t;
// A message is several lines, each ended by a NUL, all ended by one more.
typedef void (*cudnnCallback_t)(cudnnSeverity_t sev, void* udata, const cudnnDebug_t* dbg, const char* msg);

#endif
