// SPDX-License-Identifier: Apache-2.0
// Everything: #include <tessera/tessera.hpp>
#pragma once

#include "tessera/graph.hpp"
#include "tessera/ops.hpp"
#include "tessera/plan.hpp"
