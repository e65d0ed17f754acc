// SPDX-License-Identifier: Apache-2.0
// All exported functions as data: their names come from the linker's list, their types and the names of their
// parameters from the headers, so that a new function takes part without being named anywhere.
#pragma once

#include <cudnn_rnn_v7.h>

#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <typeindex>
#include <utility>

#include "client.hpp"

namespace client {

enum class Kind { pointer, enumerator, integer, real, stream };

// An argument, in the form that its kind has.
struct Value {
  int64_t number = 0;
  double real = 0;
  void* pointer = nullptr;
};

// Tells types apart, those that the headers only name too.
template <class T>
struct Of {};
template <class T>
std::type_index type_of() {
  return typeid(Of<std::remove_cv_t<std::remove_pointer_t<T>>>);
}

struct Parameter {
  Kind kind;
  std::type_index type;  // what it points to, without const; else itself
  std::string name;
};

struct Function {
  std::string name;
  std::vector<Parameter> parameters;
  std::function<cudnnStatus_t(const std::vector<Value>&)> call;
  bool has_status = true;  // otherwise it cannot fail

  bool starts_with(const std::string& text) const { return name.rfind(text, 0) == 0; }
};

template <class T>
constexpr Kind kind_of() {
  if constexpr (std::is_same_v<T, cudaStream_t> || std::is_same_v<T, cudaGraph_t>)
    return Kind::stream;
  else if constexpr (std::is_pointer_v<T>)
    return Kind::pointer;
  else if constexpr (std::is_enum_v<T>)
    return Kind::enumerator;
  else
    return std::is_floating_point_v<T> ? Kind::real : Kind::integer;
}

template <class T>
T to(const Value& v) {
  if constexpr (std::is_pointer_v<T>)
    return reinterpret_cast<T>(v.pointer);
  else
    return kind_of<T>() == Kind::real ? static_cast<T>(v.real) : static_cast<T>(v.number);
}

// "const int dimA[]" -> "dimA"
inline std::string last_word(const std::string& text) {
  auto is_letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  size_t end = text.find('[') == std::string::npos ? text.size() : text.find('[');
  while (end > 0 && !is_letter(text[end - 1])) --end;
  size_t begin = end;
  while (begin > 0 && is_letter(text[begin - 1])) --begin;
  return text.substr(begin, end - begin);
}

// The names of a function's parameters, as a header declares them.
inline std::vector<std::string> parameter_names(const std::string& headers, const std::string& function) {
  std::vector<std::string> names;
  size_t open = headers.find(function + "("), close = headers.find(')', open);
  if (open == std::string::npos) return names;
  open += function.size() + 1;
  std::istringstream in(headers.substr(open, close - open));
  for (std::string p; std::getline(in, p, ',');) names.push_back(last_word(p));
  return names;
}

class Functions {
 public:
  Functions() {
    for (const char* file : {"graph", "ops", "cnn", "adv", "rnn_v7", "subquadratic_ops", "gnn_ops", "backend"}) {
      std::ifstream in(std::string(TESSERA_CUDNN_HEADERS) + "/cudnn_" + file + ".h");
      headers_.append(std::istreambuf_iterator<char>(in), {});
    }
    auto each = [&](const char* name, auto function) { add(name, function); };
#include TESSERA_EVERY_FUNCTION  // each("NAME", &NAME); for all of them
  }
  const std::vector<Function>& all() const { return all_; }

 private:
  template <class R, class... T>
  void add(const std::string& name, R (*function)(T...)) {
    Function f{name, {}, {}, std::is_same_v<R, cudnnStatus_t>};
    std::vector<std::string> names = parameter_names(headers_, name);
    names.resize(sizeof...(T));
    size_t i = 0;
    (f.parameters.push_back({kind_of<T>(), type_of<T>(), names[i++]}), ...);
    f.call = [function](const std::vector<Value>& v) {
      return call(function, v, std::make_index_sequence<sizeof...(T)>());
    };
    all_.push_back(std::move(f));
  }
  template <class R, class... T, size_t... I>
  static cudnnStatus_t call(R (*function)(T...), [[maybe_unused]] const std::vector<Value>& v,
                            std::index_sequence<I...>) {
    if constexpr (std::is_same_v<R, cudnnStatus_t>) return function(to<T>(v[I])...);
    function(to<T>(v[I])...);
    return CUDNN_STATUS_SUCCESS;
  }

  std::string headers_;
  std::vector<Function> all_;
};

}  // namespace client
