// SPDX-License-Identifier: Apache-2.0
#include "capi/backend/table.hpp"

namespace tsr::capi {
namespace {

constexpr AttributeRow kOperationConcat[] = {
    required(value(NAMED(CUDNN_ATTR_OPERATION_CONCAT_AXIS), CUDNN_TYPE_INT64)),
    required(list(tensor(NAMED(CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS)))),
    value(NAMED(CUDNN_ATTR_OPERATION_CONCAT_INPLACE_INDEX), CUDNN_TYPE_INT64),
    required(tensor(NAMED(CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC))),
};

constexpr AttributeRow kOperationSignal[] = {
    required(value(NAMED(CUDNN_ATTR_OPERATION_SIGNAL_MODE), CUDNN_TYPE_SIGNAL_MODE)),
    required(tensor(NAMED(CUDNN_ATTR_OPERATION_SIGNAL_FLAGDESC))),
    value(NAMED(CUDNN_ATTR_OPERATION_SIGNAL_VALUE), CUDNN_TYPE_INT64),
    tensor(NAMED(CUDNN_ATTR_OPERATION_SIGNAL_XDESC)),
    tensor(NAMED(CUDNN_ATTR_OPERATION_SIGNAL_YDESC)),
};

constexpr AttributeRow kOperationReshape[] = {
    required(tensor(NAMED(CUDNN_ATTR_OPERATION_RESHAPE_XDESC))),
    required(tensor(NAMED(CUDNN_ATTR_OPERATION_RESHAPE_YDESC))),
    initially(0, value(NAMED(CUDNN_ATTR_OPERATION_RESHAPE_MODE), CUDNN_TYPE_RESHAPE_MODE)),
};

constexpr AttributeRow kRng[] = {
    required(value(NAMED(CUDNN_ATTR_RNG_DISTRIBUTION), CUDNN_TYPE_RNG_DISTRIBUTION)),
    initially(0, value(NAMED(CUDNN_ATTR_RNG_NORMAL_DIST_MEAN), CUDNN_TYPE_DOUBLE)),
    initially(1, value(NAMED(CUDNN_ATTR_RNG_NORMAL_DIST_STANDARD_DEVIATION), CUDNN_TYPE_DOUBLE)),
    initially(1, value(NAMED(CUDNN_ATTR_RNG_UNIFORM_DIST_MAXIMUM), CUDNN_TYPE_DOUBLE)),
    initially(0, value(NAMED(CUDNN_ATTR_RNG_UNIFORM_DIST_MINIMUM), CUDNN_TYPE_DOUBLE)),
    initially(0.5, value(NAMED(CUDNN_ATTR_RNG_BERNOULLI_DIST_PROBABILITY), CUDNN_TYPE_DOUBLE)),
};

constexpr AttributeRow kOperationRng[] = {
    required(tensor(NAMED(CUDNN_ATTR_OPERATION_RNG_YDESC))),
    initially(0, or_number(tensor(NAMED(CUDNN_ATTR_OPERATION_RNG_SEED)))),
    required(part(NAMED(CUDNN_ATTR_OPERATION_RNG_DESC), CUDNN_BACKEND_RNG_DESCRIPTOR)),
    tensor(NAMED(CUDNN_ATTR_OPERATION_RNG_OFFSET_DESC)),
};

constexpr AttributeRow kOperationBlockScaleQuantize[] = {
    required(tensor(NAMED(CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_XDESC))),
    required(tensor(NAMED(CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_YDESC))),
    required(tensor(NAMED(CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_SCALE_DESC))),
    initially(0, value(NAMED(CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_MATH_PREC), CUDNN_TYPE_DATA_TYPE)),
    required(for_dims(value(NAMED(CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_BLOCK_SIZE), CUDNN_TYPE_INT32))),
};

constexpr AttributeRow kOperationBlockScaleDequantize[] = {
    required(tensor(NAMED(CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_XDESC))),
    required(tensor(NAMED(CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_SCALE_DESC))),
    required(tensor(NAMED(CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_YDESC))),
    initially(0, value(NAMED(CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_MATH_PREC), CUDNN_TYPE_DATA_TYPE)),
    required(for_dims(value(NAMED(CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_BLOCK_SIZE), CUDNN_TYPE_INT32))),
    initially(0, value(NAMED(CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_NEG_SCALE), CUDNN_TYPE_BOOLEAN)),
};

constexpr AttributeRow kOperationTranspose[] = {
    required(tensor(NAMED(CUDNN_ATTR_OPERATION_TRANSPOSE_XDESC))),
    required(tensor(NAMED(CUDNN_ATTR_OPERATION_TRANSPOSE_YDESC))),
    required(for_dims(value(NAMED(CUDNN_ATTR_OPERATION_TRANSPOSE_PERMUTATION), CUDNN_TYPE_INT64))),
};

constexpr AttributeRow kOperationSlice[] = {
    required(tensor(NAMED(CUDNN_ATTR_OPERATION_SLICE_XDESC))),
    required(tensor(NAMED(CUDNN_ATTR_OPERATION_SLICE_YDESC))),
    required(for_dims(value(NAMED(CUDNN_ATTR_OPERATION_SLICE_START_INDICES), CUDNN_TYPE_INT64))),
    required(for_dims(value(NAMED(CUDNN_ATTR_OPERATION_SLICE_LIMIT_INDICES), CUDNN_TYPE_INT64))),
    required(for_dims(value(NAMED(CUDNN_ATTR_OPERATION_SLICE_STRIDES), CUDNN_TYPE_INT64))),
};

constexpr DescriptorRow kRows[] = {
    {.type = CUDNN_BACKEND_OPERATION_CONCAT_DESCRIPTOR,
     .text = "OPERATION_CONCAT",
     .attributes = kOperationConcat,
     .finalize = check_operation},
    {.type = CUDNN_BACKEND_OPERATION_SIGNAL_DESCRIPTOR,
     .text = "OPERATION_SIGNAL",
     .attributes = kOperationSignal,
     .finalize = check_operation},
    {.type = CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
     .text = "OPERATION_RESHAPE",
     .attributes = kOperationReshape,
     .finalize = check_operation},
    {.type = CUDNN_BACKEND_RNG_DESCRIPTOR, .text = "RNG", .attributes = kRng},
    {.type = CUDNN_BACKEND_OPERATION_RNG_DESCRIPTOR,
     .text = "OPERATION_RNG",
     .attributes = kOperationRng,
     .finalize = check_operation},
    {.type = CUDNN_BACKEND_OPERATION_BLOCK_SCALE_QUANTIZE_DESCRIPTOR,
     .text = "OPERATION_BLOCK_SCALE_QUANTIZE",
     .attributes = kOperationBlockScaleQuantize,
     .missing = CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
     .finalize = check_operation},
    {.type = CUDNN_BACKEND_OPERATION_BLOCK_SCALE_DEQUANTIZE_DESCRIPTOR,
     .text = "OPERATION_BLOCK_SCALE_DEQUANTIZE",
     .attributes = kOperationBlockScaleDequantize,
     .missing = CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED,
     .finalize = check_operation},
    {.type = CUDNN_BACKEND_OPERATION_TRANSPOSE_DESCRIPTOR,
     .text = "OPERATION_TRANSPOSE",
     .attributes = kOperationTranspose,
     .finalize = check_operation},
    {.type = CUDNN_BACKEND_OPERATION_SLICE_DESCRIPTOR,
     .text = "OPERATION_SLICE",
     .attributes = kOperationSlice,
     .finalize = check_operation},
};

}  // namespace

std::span<const DescriptorRow> rows_of_moves() { return kRows; }

}  // namespace tsr::capi
