// SPDX-License-Identifier: Apache-2.0
// cudnn-frontend's C++ headers as a client of the library. One translation unit, since they take nearly all of the time
// that compiling it takes.
#include "graphs_test.hpp"
#include "plans_test.hpp"
