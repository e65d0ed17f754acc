// SPDX-License-Identifier: Apache-2.0
#include "cudnn/backend.hpp"

#include <utility>

namespace cudnn {
namespace {

std::string attribute_text(Attr name, Kind kind) {
  return "attribute " + std::to_string(static_cast<int>(name)) + " of descriptor " +
         std::to_string(static_cast<int>(kind));
}

}  // namespace

Library::Library(const std::string& path) : opened_(path, "libcudnn.so.9") {
  opened_.find("cudnnGetVersion", functions_.version);
  opened_.find("cudnnGetErrorString", functions_.status_text);
  opened_.find("cudnnGetLastErrorString", functions_.last_error);
  opened_.find("cudnnCreate", functions_.create);
  opened_.find("cudnnDestroy", functions_.destroy);
  opened_.find("cudnnSetStream", functions_.set_stream);
  opened_.find("cudnnBackendCreateDescriptor", functions_.create_descriptor);
  opened_.find("cudnnBackendDestroyDescriptor", functions_.destroy_descriptor);
  opened_.find("cudnnBackendFinalize", functions_.finalize);
  opened_.find("cudnnBackendSetAttribute", functions_.set);
  opened_.find("cudnnBackendGetAttribute", functions_.get);
  opened_.find("cudnnBackendExecute", functions_.execute);
  version_ = static_cast<int64_t>(functions_.version());
}

std::string Library::last_error() const {
  char text[4096] = "";
  functions_.last_error(text, sizeof text);
  return text;
}

void Library::check(int status, std::string_view function) const {
  if (status == 0) return;
  std::string said = last_error();
  std::string text =
      std::string(function) + ": " + functions_.status_text(status) + " (" + std::to_string(status) + ")";
  throw Error(status, said.empty() ? text : text + ": " + said);
}

Handle::Handle(const Library& library) : library_(library) {
  library.check(library.call().create(&raw_), "cudnnCreate");
}

Handle::~Handle() { library_.call().destroy(raw_); }

void Handle::use_stream(void* stream) {
  if (stream == stream_) return;
  library_.check(library_.call().set_stream(raw_, stream), "cudnnSetStream");
  stream_ = stream;
}

Descriptor::Descriptor(const Library& library, Kind kind) : library_(&library), kind_(kind) {
  library.check(library.call().create_descriptor(static_cast<int>(kind), &raw_),
                "cudnnBackendCreateDescriptor of type " + std::to_string(static_cast<int>(kind)));
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : library_(other.library_), kind_(other.kind_), raw_(std::exchange(other.raw_, nullptr)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(library_, other.library_);
  std::swap(kind_, other.kind_);
  std::swap(raw_, other.raw_);
  return *this;
}

Descriptor::~Descriptor() {
  if (raw_) library_->call().destroy_descriptor(raw_);
}

void Descriptor::set(Attr name, AttrType type, const void* values, size_t count) {
  int status =
      library_->call().set(raw_, static_cast<int>(name), static_cast<int>(type), static_cast<int64_t>(count), values);
  if (status != 0) library_->check(status, "cudnnBackendSetAttribute, " + attribute_text(name, kind_));
}

void Descriptor::finalize() {
  int status = library_->call().finalize(raw_);
  if (status != 0)
    library_->check(status, "cudnnBackendFinalize of descriptor " + std::to_string(static_cast<int>(kind_)));
}

int64_t Descriptor::get(Attr name, AttrType type, void* values, int64_t capacity) const {
  int64_t count = 0;
  int status = library_->call().get(raw_, static_cast<int>(name), static_cast<int>(type), capacity, &count, values);
  if (status != 0) library_->check(status, "cudnnBackendGetAttribute, " + attribute_text(name, kind_));
  return count;
}

int64_t Descriptor::get_int64(Attr name) const {
  int64_t value = 0;
  get(name, AttrType::int64, &value, 1);
  return value;
}

}  // namespace cudnn
