// SPDX-License-Identifier: Apache-2.0
// Graphs as front ends send them (tests/capi/recorded), made through the C interface.
#pragma once

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

#include "graph_client.hpp"

namespace client {

inline std::vector<std::string> split(const std::string& s, char at) {
  std::vector<std::string> parts;
  std::istringstream in(s);
  for (std::string p; std::getline(in, p, at);) parts.push_back(p);
  return parts;
}

// Values of an attribute, as the program's memory holds them.
inline void set_values(Piece& d, int name, cudnnBackendAttributeType_t type, const std::vector<std::string>& text) {
  auto as = [&](auto convert) {
    std::vector<decltype(convert(text[0]))> v;
    for (const std::string& t : text) v.push_back(convert(t));
    d.set(name, type, v);
  };
  switch (type) {
    case CUDNN_TYPE_FLOAT:
      return as([](const std::string& t) { return std::stof(t); });
    case CUDNN_TYPE_DOUBLE:
      return as([](const std::string& t) { return std::stod(t); });
    case CUDNN_TYPE_INT64:
      return as([](const std::string& t) { return static_cast<int64_t>(std::stoll(t)); });
    case CUDNN_TYPE_BOOLEAN:
      return as([](const std::string& t) { return static_cast<char>(t == "1"); });
    case CUDNN_TYPE_FRACTION:
      return as([](const std::string& t) {
        auto parts = split(t, '/');
        return cudnnFraction_t{std::stoll(parts[0]), std::stoll(parts[1])};
      });
    case CUDNN_TYPE_VOID_PTR: {  // a constant
      float value = std::stof(text[0]);
      d.set(name, type, std::vector<void*>{&value});
      return;
    }
    default:  // INT32 and enumerations
      return as([](const std::string& t) { return std::stoi(t); });
  }
}

// What a descriptor says of a tensor's memory.
struct TensorFacts {
  int64_t uid = 0;
  double elements = 1, bytes = 0;  // of each dimension's sizes; of memory from the first to the last
  bool hidden = false, by_value = false;
};

inline TensorFacts facts_of(const Part& t) {
  TensorFacts f;
  auto type = CUDNN_DATA_FLOAT;
  auto order = CUDNN_TENSOR_REORDERING_NONE;
  must(t.get(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, nullptr, &f.uid));
  must(t.get(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, nullptr, &type));
  must(t.get(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, nullptr, &f.hidden));
  must(t.get(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, nullptr, &f.by_value));
  must(t.get(CUDNN_ATTR_TENSOR_REORDERING_MODE, CUDNN_TYPE_TENSOR_REORDERING_MODE, 1, nullptr, &order));
  Ints dims = t.list<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64),
       strides = t.list<int64_t>(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64);
  double last = 0;
  for (size_t i = 0; i < dims.size(); ++i) {
    f.elements *= static_cast<double>(dims[i]);
    last += static_cast<double>(dims[i] - 1) * static_cast<double>(strides[i]);
  }
  f.bytes = (last + 1) * static_cast<double>(size_of(type));
  // Whole tiles of 128 x 4 scale factors.
  if (order != CUDNN_TENSOR_REORDERING_NONE) f.bytes = (last + 1) * 128 * 4;
  return f;
}

// The descriptors of one graph, by their names.
class Recording {
 public:
  Recording(const std::vector<std::string>& lines, cudnnHandle_t handle) {
    for (const std::string& line : lines) {
      std::istringstream in(line);
      std::string name, token;
      int type;
      in >> name >> type;
      auto d = std::make_unique<Piece>(type);
      while (in >> token) set(*d, token);
      if (name == "graph") d->set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, std::vector{handle});
      d->finalize();
      parts_[name] = std::move(d);
    }
  }
  const Piece& graph() const { return *parts_.at("graph"); }
  std::vector<cudnnBackendDescriptor_t> descriptors() const {
    std::vector<cudnnBackendDescriptor_t> all;
    for (const auto& [name, part] : parts_) all.push_back(*part);
    return all;
  }
  std::vector<TensorFacts> tensors() const {
    std::vector<TensorFacts> all;
    for (const auto& [name, part] : parts_)
      if (part->type() == CUDNN_BACKEND_TENSOR_DESCRIPTOR) all.push_back(facts_of(*part));
    return all;
  }

 private:
  // ATTRIBUTE=#NAME,.. or ATTRIBUTE=TYPE:VALUE,..
  void set(Piece& d, const std::string& token) {
    size_t equal = token.find('=');
    int name = std::stoi(token.substr(0, equal));
    std::string value = token.substr(equal + 1);
    if (value[0] == '#') {
      std::vector<cudnnBackendDescriptor_t> others;
      for (const std::string& other : split(value, ',')) others.push_back(*parts_.at(other.substr(1)));
      d.set(name, others);
      return;
    }
    size_t colon = value.find(':');
    set_values(d, name, static_cast<cudnnBackendAttributeType_t>(std::stoi(value.substr(0, colon))),
               split(value.substr(colon + 1), ','));
  }
  std::map<std::string, std::unique_ptr<Piece>> parts_;
};

// Lines of descriptors with changes: CHANGE(attributes) is given the attributes of each tensor, as `902` -> `3:2,4,8`.
template <class Change>
std::vector<std::string> with_tensors(std::vector<std::string> lines, const Change& change) {
  for (std::string& line : lines) {
    std::vector<std::string> tokens = split(line, ' ');
    if (tokens[1] != std::to_string(CUDNN_BACKEND_TENSOR_DESCRIPTOR)) continue;
    std::map<int, std::string> attributes;
    for (size_t i = 2; i < tokens.size(); ++i) {
      size_t equal = tokens[i].find('=');
      attributes[std::stoi(tokens[i])] = tokens[i].substr(equal + 1);
    }
    change(attributes);
    line = tokens[0] + " " + tokens[1];
    for (const auto& [name, value] : attributes) line += " " + std::to_string(name) + "=" + value;
  }
  return lines;
}

inline Ints numbers_of(const std::string& value) {  // TYPE:VALUE,..
  Ints v;
  for (const std::string& n : split(value.substr(value.find(':') + 1), ',')) v.push_back(std::stoll(n));
  return v;
}

inline std::vector<std::string> aligned_to(const std::vector<std::string>& lines, int64_t bytes) {
  return with_tensors(lines, [&](auto& t) { t[CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT] = "3:" + std::to_string(bytes); });
}

// Sizes of tensors, as a program overrides them.
inline std::vector<Resized> sizes_of(const std::vector<std::string>& lines, bool virtual_too) {
  std::vector<Resized> all;
  with_tensors(lines, [&](auto& t) {
    if (t.count(CUDNN_ATTR_TENSOR_IS_BY_VALUE) || (t.count(CUDNN_ATTR_TENSOR_IS_VIRTUAL) && !virtual_too)) return;
    all.push_back({numbers_of(t[CUDNN_ATTR_TENSOR_UNIQUE_ID])[0], numbers_of(t[CUDNN_ATTR_TENSOR_DIMENSIONS]),
                   numbers_of(t[CUDNN_ATTR_TENSOR_STRIDES])});
  });
  return all;
}

// Another first size, where it is `from`; of offsets of packed sequences, which are one more, too.
inline std::vector<std::string> with_batch(const std::vector<std::string>& lines, int64_t from, int64_t to) {
  return with_tensors(lines, [&](auto& t) {
    std::string& value = t[CUDNN_ATTR_TENSOR_DIMENSIONS];
    Ints dims = numbers_of(value);
    bool offsets = dims[0] == from + 1 && count_of(dims) == dims[0];
    if (dims[0] != from && !offsets) return;
    size_t colon = value.find(':'), comma = std::min(value.find(','), value.size());
    value.replace(colon + 1, comma - colon - 1, std::to_string(to + (offsets ? 1 : 0)));
  });
}

// A graph of a file: its title, its descriptors line by line, and the line at which its text form begins.
struct RecordedGraph {
  std::string title;
  std::vector<std::string> lines;
  int text_at = 0;

  std::string text() const {
    std::string all = "# " + title + "\n";
    for (const std::string& line : lines) all += "#% " + line + "\n";
    return all;
  }
};

inline std::string recorded_path(const std::string& file) {
  const char* folder = std::getenv("TESSERA_RECORDED");  // on a machine where the tests were not built
  return std::string(folder ? folder : TESSERA_RECORDED) + "/" + file;
}

inline std::vector<RecordedGraph> read_recorded(const std::string& file) {
  std::ifstream in(recorded_path(file));
  std::vector<RecordedGraph> graphs;
  RecordedGraph next;
  std::string line;
  for (int at = 1; std::getline(in, line); ++at) {
    if (line.rfind("#% ", 0) == 0) {
      next.lines.push_back(line.substr(3));
    } else if (line.rfind("# ", 0) == 0) {
      next.title = line.substr(2);
    } else if (!next.lines.empty()) {
      next.text_at = at;
      graphs.push_back(std::move(next));
      next = {};
    }
  }
  return graphs;
}

}  // namespace client
