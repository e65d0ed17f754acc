// SPDX-License-Identifier: Apache-2.0
// How every function of the stand-in answers: a failure is an error code for the program, which is also the thread's
// last error, and a line on standard error, since a code cannot say what was wrong.
#pragma once

#include <new>
#include <sstream>
#include <string>

#include "cudart/cudart.hpp"

namespace cudart {

struct Failure {
  cudaError_t code;
  std::string text;  // may be empty: nothing is said
};

template <class... T>
[[noreturn]] void fail(cudaError_t code, const T&... text) {
  std::ostringstream s;
  (s << ... << text);
  throw Failure{code, s.str()};
}

template <class... T>
void demand(bool condition, cudaError_t code, const T&... text) {
  if (!condition) fail(code, text...);
}

template <class T>
T& given(T* pointer, const char* name) {
  demand(pointer != nullptr, cudaErrorInvalidValue, name, " is a null pointer");
  return *pointer;
}

void say(const std::string& text);  // one line on standard error, with our name in front
cudaError_t report(const char* function, const Failure& f);

template <class F>
cudaError_t answer(const char* function, const F& body) {
  try {
    body();
    return cudaSuccess;
  } catch (const Failure& f) {
    return report(function, f);
  } catch (const std::bad_alloc&) {
    return report(function, {cudaErrorMemoryAllocation, "out of memory"});
  } catch (const std::exception& e) {
    return report(function, {cudaErrorUnknown, e.what()});
  }
}

}  // namespace cudart
