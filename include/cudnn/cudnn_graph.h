// Versions, handles, errors and logging, and the graph API: operations on tensors are described by descriptors, joined
// to a graph, planned and executed.
#ifndef CUDNN_GRAPH_H_
#define CUDNN_GRAPH_H_

#include "cudnn_attributes.h"
#include "cudnn_types.h"

#define CUDNN_GRAPH_MAJOR CUDNN_MAJOR
#define CUDNN_GRAPH_MINOR CUDNN_MINOR
#define CUDNN_GRAPH_PATCH CUDNN_PATCHLEVEL

#ifdef __cplusplus
extern "C" {
#endif

// --- versions

// CUDNN_VERSION of the library; the newest compute capability it knows; the CUDA run time it was built with.
size_t CUDNNWINAPI cudnnGetVersion(void);
size_t CUDNNWINAPI cudnnGetMaxDeviceVersion(void);
size_t CUDNNWINAPI cudnnGetCudartVersion(void);
// One part of the version.
cudnnStatus_t CUDNNWINAPI cudnnGetProperty(libraryPropertyType type, int* value);
// Whether this part of the library fits the rest.
cudnnStatus_t CUDNNWINAPI cudnnGraphVersionCheck(void);

// --- handles

// A handle belongs to the current device. Work is put into its stream, at first the default stream.
cudnnStatus_t CUDNNWINAPI cudnnCreate(cudnnHandle_t* handle);
cudnnStatus_t CUDNNWINAPI cudnnDestroy(cudnnHandle_t handle);
cudnnStatus_t CUDNNWINAPI cudnnSetStream(cudnnHandle_t handle, cudaStream_t streamId);
cudnnStatus_t CUDNNWINAPI cudnnGetStream(cudnnHandle_t handle, cudaStream_t* streamId);

// --- errors and logging

// The name of a status; a text about the last failure, which reading clears.
const char* CUDNNWINAPI cudnnGetErrorString(cudnnStatus_t status);
void CUDNNWINAPI cudnnGetLastErrorString(char* message, size_t max_size);
// Deprecated: errors found while kernels ran.
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnQueryRuntimeError(cudnnHandle_t handle, cudnnStatus_t* rstatus,
                                                                  cudnnErrQueryMode_t mode, cudnnRuntimeTag_t* tag);
// Sends messages of the wanted severities to a function of the caller's.
cudnnStatus_t CUDNNWINAPI cudnnSetCallback(unsigned int mask, void* udata, cudnnCallback_t fptr);
cudnnStatus_t CUDNNWINAPI cudnnGetCallback(unsigned int* mask, void** udata, cudnnCallback_t* fptr);

// --- modes of operations: values of attributes

// y = f(alpha1 x, alpha2 b); gradients give dx = dy f'(x).
typedef enum {
  CUDNN_POINTWISE_ADD = 0,
  CUDNN_POINTWISE_MUL = 1,
  CUDNN_POINTWISE_MIN = 2,
  CUDNN_POINTWISE_MAX = 3,
  CUDNN_POINTWISE_SQRT = 4,
  CUDNN_POINTWISE_ADD_SQUARE = 5,  // x + b * b
  CUDNN_POINTWISE_DIV = 6,
  CUDNN_POINTWISE_MOD = 7,  // the sign of x, as fmod
  CUDNN_POINTWISE_POW = 8,
  CUDNN_POINTWISE_SUB = 9,
  CUDNN_POINTWISE_ABS = 10,
  CUDNN_POINTWISE_CEIL = 11,
  CUDNN_POINTWISE_COS = 12,
  CUDNN_POINTWISE_EXP = 13,
  CUDNN_POINTWISE_FLOOR = 14,
  CUDNN_POINTWISE_LOG = 15,
  CUDNN_POINTWISE_NEG = 16,
  CUDNN_POINTWISE_RSQRT = 17,
  CUDNN_POINTWISE_SIN = 18,
  CUDNN_POINTWISE_TAN = 19,
  CUDNN_POINTWISE_ERF = 20,
  CUDNN_POINTWISE_IDENTITY = 21,  // a copy, which may convert
  CUDNN_POINTWISE_RECIPROCAL = 22,
  CUDNN_POINTWISE_ATAN2 = 23,
  CUDNN_POINTWISE_FLOOR_MOD = 24,  // the sign of b
  CUDNN_POINTWISE_RELU_FWD = 100,  // with limits, and a slope below the lower one
  CUDNN_POINTWISE_TANH_FWD = 101,
  CUDNN_POINTWISE_SIGMOID_FWD = 102,
  CUDNN_POINTWISE_ELU_FWD = 103,
  CUDNN_POINTWISE_GELU_FWD = 104,  // by erf
  CUDNN_POINTWISE_SOFTPLUS_FWD = 105,
  CUDNN_POINTWISE_SWISH_FWD = 106,  // x * sigmoid(beta x)
  CUDNN_POINTWISE_GELU_APPROX_TANH_FWD = 107,
  CUDNN_POINTWISE_RELU_BWD = 200,
  CUDNN_POINTWISE_TANH_BWD = 201,
  CUDNN_POINTWISE_SIGMOID_BWD = 202,
  CUDNN_POINTWISE_ELU_BWD = 203,
  CUDNN_POINTWISE_GELU_BWD = 204,
  CUDNN_POINTWISE_SOFTPLUS_BWD = 205,
  CUDNN_POINTWISE_SWISH_BWD = 206,
  CUDNN_POINTWISE_GELU_APPROX_TANH_BWD = 207,
  CUDNN_POINTWISE_CMP_EQ = 300,
  CUDNN_POINTWISE_CMP_NEQ = 301,
  CUDNN_POINTWISE_CMP_GT = 302,
  CUDNN_POINTWISE_CMP_GE = 303,
  CUDNN_POINTWISE_CMP_LT = 304,
  CUDNN_POINTWISE_CMP_LE = 305,
  CUDNN_POINTWISE_LOGICAL_AND = 400,
  CUDNN_POINTWISE_LOGICAL_OR = 401,
  CUDNN_POINTWISE_LOGICAL_NOT = 402,
  CUDNN_POINTWISE_GEN_INDEX = 501,      // the index along an axis
  CUDNN_POINTWISE_BINARY_SELECT = 601,  // t ? x : b
} cudnnPointwiseMode_t;

// Pooling and interpolation.
typedef enum {
  CUDNN_RESAMPLE_NEAREST = 0,
  CUDNN_RESAMPLE_BILINEAR = 1,
  CUDNN_RESAMPLE_AVGPOOL = 2,  // another name of the next
  CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING = 2,
  CUDNN_RESAMPLE_MAXPOOL = 3,
  CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING = 4,
} cudnnResampleMode_t;

// What lies around a tensor for windows that reach beyond it.
typedef enum { CUDNN_ZERO_PAD = 0, CUDNN_NEG_INF_PAD = 1, CUDNN_EDGE_VAL_PAD = 2 } cudnnPaddingMode_t;

typedef enum {
  CUDNN_LAYER_NORM = 0,
  CUDNN_INSTANCE_NORM = 1,
  CUDNN_BATCH_NORM = 2,
  CUDNN_GROUP_NORM = 3,
  CUDNN_RMS_NORM = 4,
  CUDNN_ADA_LAYER_NORM = 5,
} cudnnBackendNormMode_t;
// Training also gives the statistics that gradients need.
typedef enum { CUDNN_NORM_FWD_INFERENCE = 0, CUDNN_NORM_FWD_TRAINING = 1 } cudnnBackendNormFwdPhase_t;

// Sums and sums of squares for each channel, and the scale and bias that batch norm makes of them.
typedef enum { CUDNN_GENSTATS_SUM_SQSUM = 0 } cudnnGenStatsMode_t;
typedef enum {
  CUDNN_BN_FINALIZE_STATISTICS_TRAINING = 0,
  CUDNN_BN_FINALIZE_STATISTICS_INFERENCE = 1
} cudnnBnFinalizeStatsMode_t;

typedef enum {
  CUDNN_RNG_DISTRIBUTION_BERNOULLI = 0,
  CUDNN_RNG_DISTRIBUTION_UNIFORM = 1,
  CUDNN_RNG_DISTRIBUTION_NORMAL = 2
} cudnnRngDistribution_t;

// Whether a kernel sets a flag in memory or waits for it.
typedef enum { CUDNN_SIGNAL_SET = 0, CUDNN_SIGNAL_WAIT = 1 } cudnnSignalMode_t;

// Whether products with the weights of experts take their tokens from, or put them to, places given by indices.
typedef enum {
  CUDNN_MOE_GROUPED_MATMUL_MODE_NONE = 0,
  CUDNN_MOE_GROUPED_MATMUL_MODE_GATHER = 1,
  CUDNN_MOE_GROUPED_MATMUL_MODE_SCATTER = 2
} cudnnMoeGroupedMatmulMode_t;

// A reshape keeps memory as it is, or the row-major order of elements whatever the strides.
typedef enum { CUDNN_RESHAPE_VIEW_ONLY = 0, CUDNN_RESHAPE_LOGICAL = 1 } cudnnBackendReshapeMode_t;

// Orders of elements inside a tensor that strides cannot say. F8_128x4 is how tensor cores read block scales.
typedef enum {
  CUDNN_TENSOR_REORDERING_NONE = 0,
  CUDNN_TENSOR_REORDERING_INT8x32 = 1,
  CUDNN_TENSOR_REORDERING_F16x16 = 2,
  CUDNN_TENSOR_REORDERING_F8_128x4 = 3
} cudnnBackendTensorReordering_t;

// A ratio, such as the stride of an interpolation.
typedef struct cudnnFractionStruct {
  int64_t numerator;
  int64_t denominator;
} cudnnFraction_t;

// --- choosing an engine

// Kinds of graphs; a finalized graph tells the one that was recognised.
typedef enum {
  CUDNN_OPERATIONGRAPH_MODE_AUTO = -1,  // not said
  CUDNN_OPERATIONGRAPH_MODE_CONV_FORWARD = 0,
  CUDNN_OPERATIONGRAPH_MODE_CONV_BWD_DATA = 1,
  CUDNN_OPERATIONGRAPH_MODE_CONV_BWD_FILTER = 2,
  CUDNN_OPERATIONGRAPH_MODE_NORM_FWD_INFER = 17,
  CUDNN_OPERATIONGRAPH_MODE_NORM_FWD_TRAIN = 18,
  CUDNN_OPERATIONGRAPH_MODE_NORM_BWD = 19,
  CUDNN_OPERATIONGRAPH_MODE_GENERIC_CONV_FUSION = 20,
  CUDNN_OPERATIONGRAPH_MODE_RESAMPLE_FWD = 22,
  CUDNN_OPERATIONGRAPH_MODE_RESAMPLE_BWD = 23,
  CUDNN_OPERATIONGRAPH_MODE_BLAS_MATMUL = 25,
  CUDNN_OPERATIONGRAPH_MODE_GENERIC_MATMUL_FUSION = 26,
  CUDNN_OPERATIONGRAPH_MODE_GENERIC_POINTWISE_FUSION = 27,
  CUDNN_OPERATIONGRAPH_MODE_SDPA_FWD = 28,  // attention spelled out
  CUDNN_OPERATIONGRAPH_MODE_SDPA_BWD = 29,
  CUDNN_OPERATIONGRAPH_MODE_UNIFIED_SDPA_FWD = 30,  // attention as one operation
  CUDNN_OPERATIONGRAPH_MODE_UNIFIED_SDPA_BWD = 31,
} cudnnBackendOperationGraphMode_t;

// How configurations of engines are found: A (of which INSTANT is another name) and B order them by expected speed,
// FALLBACK lists those that always work.
typedef enum {
  CUDNN_HEUR_MODE_INSTANT = 0,
  CUDNN_HEUR_MODE_B = 1,
  CUDNN_HEUR_MODE_FALLBACK = 2,
  CUDNN_HEUR_MODE_A = 3,
  CUDNN_HEUR_MODES_COUNT = 4,
} cudnnBackendHeurMode_t;

// What an engine does to numbers.
typedef enum {
  CUDNN_NUMERICAL_NOTE_TENSOR_CORE = 0,                  // uses tensor cores
  CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS = 1,          // rounds inputs to a narrower type
  CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION = 2,  // sums in a narrower type than asked for
  CUDNN_NUMERICAL_NOTE_FFT = 3,
  CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC = 4,  // bits may differ from run to run
  CUDNN_NUMERICAL_NOTE_WINOGRAD = 5,
  CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4 = 6,
  CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6 = 7,
  CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13 = 8,
  CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP = 9,  // NaN in, NaN out
  CUDNN_NUMERICAL_NOTE_TYPE_COUNT = 10,
} cudnnBackendNumericalNote_t;

// What else a caller may want to know about an engine.
typedef enum {
  CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION = 0,              // compiles a kernel when a plan is made
  CUDNN_BEHAVIOR_NOTE_REQUIRES_FILTER_INT8x32_REORDER = 1,  // wants cudnnReorderFilterAndBias
  CUDNN_BEHAVIOR_NOTE_REQUIRES_BIAS_INT8x32_REORDER = 2,
  CUDNN_BEHAVIOR_NOTE_SUPPORTS_CUDA_GRAPH_NATIVE_API = 3,  // works with cudnnBackendPopulateCudaGraph
  CUDNN_BEHAVIOR_NOTE_CUBLASLT_DEPENDENCY = 4,
  CUDNN_BEHAVIOR_NOTE_TYPE_COUNT = 5,
} cudnnBackendBehaviorNote_t;

// Layouts that an engine would like.
typedef enum {
  CUDNN_LAYOUT_TYPE_PREFERRED_NCHW = 0,
  CUDNN_LAYOUT_TYPE_PREFERRED_NHWC = 1,
  CUDNN_LAYOUT_TYPE_PREFERRED_PAD4CK = 2,
  CUDNN_LAYOUT_TYPE_PREFERRED_PAD8CK = 3,
  CUDNN_LAYOUT_TYPE_COUNT = 4,
} cudnnBackendLayoutType_t;

// Choices inside an engine; each engine tells which it has and their ranges.
typedef enum {
  CUDNN_KNOB_TYPE_SPLIT_K CUDNN_DEPRECATED_ENUM = 0,
  CUDNN_KNOB_TYPE_SWIZZLE = 1,
  CUDNN_KNOB_TYPE_TILE_SIZE = 2,
  CUDNN_KNOB_TYPE_USE_TEX CUDNN_DEPRECATED_ENUM = 3,
  CUDNN_KNOB_TYPE_EDGE = 4,
  CUDNN_KNOB_TYPE_KBLOCK CUDNN_DEPRECATED_ENUM = 5,
  CUDNN_KNOB_TYPE_LDGA CUDNN_DEPRECATED_ENUM = 6,
  CUDNN_KNOB_TYPE_LDGB CUDNN_DEPRECATED_ENUM = 7,
  CUDNN_KNOB_TYPE_CHUNK_K CUDNN_DEPRECATED_ENUM = 8,
  CUDNN_KNOB_TYPE_SPLIT_H CUDNN_DEPRECATED_ENUM = 9,
  CUDNN_KNOB_TYPE_WINO_TILE CUDNN_DEPRECATED_ENUM = 10,
  CUDNN_KNOB_TYPE_MULTIPLY = 11,
  CUDNN_KNOB_TYPE_SPLIT_K_BUF = 12,
  CUDNN_KNOB_TYPE_TILEK = 13,
  CUDNN_KNOB_TYPE_STAGES = 14,
  CUDNN_KNOB_TYPE_REDUCTION_MODE = 15,
  CUDNN_KNOB_TYPE_CTA_SPLIT_K_MODE CUDNN_DEPRECATED_ENUM = 16,
  CUDNN_KNOB_TYPE_SPLIT_K_SLC = 17,
  CUDNN_KNOB_TYPE_IDX_MODE = 18,
  CUDNN_KNOB_TYPE_SLICED CUDNN_DEPRECATED_ENUM = 19,
  CUDNN_KNOB_TYPE_SPLIT_RS CUDNN_DEPRECATED_ENUM = 20,
  CUDNN_KNOB_TYPE_SINGLEBUFFER CUDNN_DEPRECATED_ENUM = 21,
  CUDNN_KNOB_TYPE_LDGC CUDNN_DEPRECATED_ENUM = 22,
  CUDNN_KNOB_TYPE_SPECFILT = 23,
  CUDNN_KNOB_TYPE_KERNEL_CFG = 24,
  CUDNN_KNOB_TYPE_WORKSPACE = 25,
  CUDNN_KNOB_TYPE_TILE_CGA CUDNN_DEPRECATED_ENUM = 26,
  CUDNN_KNOB_TYPE_TILE_CGA_M = 27,
  CUDNN_KNOB_TYPE_TILE_CGA_N = 28,
  CUDNN_KNOB_TYPE_BLOCK_SIZE = 29,
  CUDNN_KNOB_TYPE_OCCUPANCY = 30,
  CUDNN_KNOB_TYPE_ARRAY_SIZE_PER_THREAD = 31,
  CUDNN_KNOB_TYPE_NUM_C_PER_BLOCK CUDNN_DEPRECATED_ENUM = 32,
  CUDNN_KNOB_TYPE_SPLIT_COLS = 33,
  CUDNN_KNOB_TYPE_TILE_ROWS = 34,
  CUDNN_KNOB_TYPE_TILE_COLS = 35,
  CUDNN_KNOB_TYPE_LOAD_SIZE = 36,
  CUDNN_KNOB_TYPE_CTA_COUNT = 37,
  CUDNN_KNOB_TYPE_STREAM_K = 38,
  CUDNN_KNOB_TYPE_SPLIT_P_SLC = 39,
  CUDNN_KNOB_TYPE_TILE_M = 40,
  CUDNN_KNOB_TYPE_TILE_N = 41,
  CUDNN_KNOB_TYPE_WARP_SPEC_CFG = 42,
  CUDNN_KNOB_TYPE_SWAP_AB = 43,
  CUDNN_KNOB_TYPE_INPUT_TMA_ENABLE = 44,
  CUDNN_KNOB_TYPE_OUTPUT_TMA_ENABLE = 45,
  CUDNN_KNOB_TYPE_COUNTS = 46,
} cudnnBackendKnobType_t;

// --- descriptors: create, set attributes, finalize, use, destroy

typedef void* cudnnBackendDescriptor_t;
cudnnStatus_t CUDNNWINAPI cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t descriptorType,
                                                       cudnnBackendDescriptor_t* descriptor);
cudnnStatus_t CUDNNWINAPI cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor);
// Deprecated: descriptors are ready when created.
CUDNN_DEPRECATED cudnnStatus_t CUDNNWINAPI cudnnBackendInitialize(cudnnBackendDescriptor_t descriptor);
// After finalizing, attributes can be read and no longer set.
cudnnStatus_t CUDNNWINAPI cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                                   cudnnBackendAttributeName_t attributeName,
                                                   cudnnBackendAttributeType_t attributeType, int64_t elementCount,
                                                   const void* arrayOfElements);
cudnnStatus_t CUDNNWINAPI cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor);
// Copies at most requestedElementCount elements. With 0 and no array it only counts. Elements that are descriptors are
// filled: the caller creates them first.
cudnnStatus_t CUDNNWINAPI cudnnBackendGetAttribute(const cudnnBackendDescriptor_t descriptor,
                                                   cudnnBackendAttributeName_t attributeName,
                                                   cudnnBackendAttributeType_t attributeType,
                                                   int64_t requestedElementCount, int64_t* elementCount,
                                                   void* arrayOfElements);

// --- execution

// Workspace for the sizes that a variant pack overrides.
cudnnStatus_t CUDNNWINAPI cudnnGetExecutionPlanWorkspaceSize(cudnnHandle_t handle,
                                                             cudnnBackendDescriptor_t executionPlan,
                                                             cudnnBackendDescriptor_t variantPack,
                                                             size_t* workspaceSizeInBytes);
// Puts the work of a plan into the handle's stream, with the pointers of a variant pack.
cudnnStatus_t CUDNNWINAPI cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,
                                              cudnnBackendDescriptor_t variantPack);
// Puts it into an empty CUDA graph instead, or gives such a graph other pointers.
cudnnStatus_t CUDNNWINAPI cudnnBackendPopulateCudaGraph(cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,
                                                        cudnnBackendDescriptor_t variantPack, cudaGraph_t graph);
cudnnStatus_t CUDNNWINAPI cudnnBackendUpdateCudaGraph(cudnnHandle_t handle, cudnnBackendDescriptor_t executionPlan,
                                                      cudnnBackendDescriptor_t variantPack, cudaGraph_t graph);

#ifdef __cplusplus
}
#endif
#endif
