// SPDX-License-Identifier: Apache-2.0
// A program that is linked with one sub-library alone, and calls the function CALL of it; "none" where it has no
// functions.
#include <cudnn.h>

cudnnStatus_t none(void) { return CUDNN_STATUS_SUCCESS; }

int main(void) { return CALL() != CUDNN_STATUS_SUCCESS; }
