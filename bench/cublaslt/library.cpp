// SPDX-License-Identifier: Apache-2.0
#include "cublaslt/library.hpp"

namespace cublaslt {

Library::Library(const std::string& path) : opened_(path, "libcublasLt.so") {
  opened_.find("cublasLtGetVersion", functions_.version);
  opened_.find("cublasLtGetStatusString", functions_.status_text);
  opened_.find("cublasLtCreate", functions_.create);
  opened_.find("cublasLtDestroy", functions_.destroy);
  opened_.find("cublasLtMatmulDescCreate", functions_.create_matmul);
  opened_.find("cublasLtMatmulDescDestroy", functions_.destroy_matmul);
  opened_.find("cublasLtMatmulDescSetAttribute", functions_.set_matmul);
  opened_.find("cublasLtMatrixLayoutCreate", functions_.create_layout);
  opened_.find("cublasLtMatrixLayoutDestroy", functions_.destroy_layout);
  opened_.find("cublasLtMatrixLayoutSetAttribute", functions_.set_layout);
  opened_.find("cublasLtMatmulPreferenceCreate", functions_.create_preference);
  opened_.find("cublasLtMatmulPreferenceDestroy", functions_.destroy_preference);
  opened_.find("cublasLtMatmulPreferenceSetAttribute", functions_.set_preference);
  opened_.find("cublasLtMatmulAlgoGetHeuristic", functions_.suggest);
  opened_.find("cublasLtMatmul", functions_.run);
}

void Library::check(int status, std::string_view function) const {
  if (status == 0) return;
  throw opened::Error(std::string(function) + ": " + functions_.status_text(status) + " (" + std::to_string(status) +
                      ")");
}

Handle::Handle(const Library& library) : library_(library) {
  library.check(library.call().create(&raw_), "cublasLtCreate");
}

Handle::~Handle() { library_.call().destroy(raw_); }

}  // namespace cublaslt
