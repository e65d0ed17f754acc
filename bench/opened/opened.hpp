// SPDX-License-Identifier: Apache-2.0
// Libraries of peers, opened by their paths at run time.
#pragma once

#include <stdexcept>
#include <string>

namespace opened {

// A library that cannot be used, or a call of it that failed.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Library {
 public:
  // A path, not a bare name: the loader may know another library by it. `kind`: what it should be the path of.
  Library(const std::string& path, const std::string& kind);
  const std::string& path() const { return path_; }  // of the file that was loaded

  template <class Function>
  void find(const char* name, Function& function) const {
    function = reinterpret_cast<Function>(symbol(name));
  }

 private:
  void* symbol(const char* name) const;  // raises where there is none
  void* library_;
  std::string path_;
};

}  // namespace opened
