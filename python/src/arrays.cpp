// SPDX-License-Identifier: Apache-2.0
#include "arrays.hpp"

#include <nanobind/stl/string.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "graph/op.hpp"
#include "runtime/devices.hpp"

namespace tessera::python {
namespace {

using tsr::fail;
using tsr::require;

PyObject* interned(const char* text) {
  PyObject* s = PyUnicode_InternFromString(text);
  if (!s) throw nb::python_error();
  return s;
}

std::string class_name(nb::handle object) { return nb::cast<std::string>(nb::str(object.type().attr("__name__"))); }

// numpy's letters: kind and bytes.
Element element_of(char kind, int bytes) {
  auto typed = [&](DType t, bool plain = false) { return Element{t, bytes * 8, plain}; };
  switch (kind) {
    case 'f':
      if (bytes == 8) return typed(DType::f64);
      if (bytes == 4) return typed(DType::f32);
      if (bytes == 2) return typed(DType::f16);
      break;
    case 'i':
      if (bytes == 8) return typed(DType::i64);
      if (bytes == 4) return typed(DType::i32);
      if (bytes == 1) return typed(DType::i8);
      break;
    case 'u':
      if (bytes == 1) return typed(DType::u8, true);
      return {std::nullopt, bytes * 8, true};
    case 'V':
      return {std::nullopt, bytes * 8, true};
    case 'b':
      if (bytes == 1) return typed(DType::boolean);
      break;
    case 'c':
      if (bytes == 8) return typed(DType::c64);
      if (bytes == 16) return typed(DType::c128);
      break;
    default:
      break;
  }
  return {std::nullopt, bytes * 8, false};
}

// A format of the buffer protocol: the letters of Python's module struct, and Z before the parts of complex numbers.
Element element_of_format(const char* format, int bytes) {
  if (*format == '@' || *format == '=' || *format == '<' || *format == '|') ++format;
  if (*format == 'Z') return element_of('c', bytes);
  if (format[0] == 0 || format[1] != 0) return element_of(0, bytes);
  if (std::strchr("bhilqn", *format)) return element_of('i', bytes);
  if (std::strchr("BHILQN", *format)) return element_of('u', bytes);
  if (std::strchr("efd", *format)) return element_of('f', bytes);
  return element_of(*format == '?' ? 'b' : 0, bytes);
}

Element element_of(const dlpack::Element& e) {
  int bits = e.bits * e.lanes;
  if (e.code == dlpack::kE2m1) return {DType::e2m1, bits, true};
  if (e.lanes != 1 || e.bits % 8 != 0) return {std::nullopt, bits, false};
  switch (e.code) {
    case dlpack::kInt:
      return element_of('i', e.bits / 8);
    case dlpack::kUInt:
      return element_of('u', e.bits / 8);
    case dlpack::kFloat:
      return element_of('f', e.bits / 8);
    case dlpack::kOpaque:
      return element_of('V', e.bits / 8);
    case dlpack::kComplex:
      return element_of('c', e.bits / 8);
    case dlpack::kBool:
      return element_of('b', e.bits / 8);
    case dlpack::kBfloat:
      if (e.bits == 16) return {DType::bf16, 16, false};
      break;
    case dlpack::kE4m3fn:
      return {DType::e4m3, bits, false};
    case dlpack::kE5m2:
      return {DType::e5m2, bits, false};
    case dlpack::kE8m0:
      return {DType::e8m0, bits, false};
    default:
      break;
  }
  return {std::nullopt, bits, false};
}

// Types that every library has: only they themselves serve.
bool common(DType t) {
  switch (t) {
    case DType::f64:
    case DType::f32:
    case DType::f16:
    case DType::i64:
    case DType::i32:
    case DType::i8:
    case DType::u8:
    case DType::boolean:
    case DType::c64:
    case DType::c128:
      return true;
    default:
      return false;
  }
}

// Elements smaller than bytes, groups, and orders that strides do not describe: such memory is given as bytes.
bool given_as_bytes(const tsr::Tensor& t) {
  const tsr::DTypeInfo& i = tsr::info(t.dtype);
  return i.bits < 8 || i.vector > 1 || t.reordering != tsr::Reordering::none;
}

bool same_strides(const tsr::Dims& dims, const tsr::Dims& a, const tsr::Dims& b) {
  for (int i = 0; i < dims.size(); ++i)
    if (dims[i] > 1 && a[i] != b[i]) return false;
  return true;
}

std::string element_text(const Element& e) {
  if (e.type) return std::string(tsr::name(*e.type));
  return tsr::cat(e.plain ? "unsigned elements of " : "elements of an unknown type of ", e.bits, " bits ");
}

// The stream that a library would use now; the null stream where nothing is known of the library.
void* current_stream(nb::handle object, int gpu) {
  nb::object streams = nb::module_::import_("tessera._streams");
  return reinterpret_cast<void*>(nb::cast<uintptr_t>(streams.attr("current")(object, gpu)));
}

// The table of C functions of a type, or null. Types that were asked are remembered, and kept so that no other can take
// their place in memory.
const dlpack::Exchange* exchange_of(PyTypeObject* type) {
  static PyObject* const name = interned("__dlpack_c_exchange_api__");
  static std::vector<std::pair<PyTypeObject*, const dlpack::Exchange*>> known;
  for (const auto& [t, table] : known)
    if (t == type) return table;
  nb::object capsule = nb::steal(PyObject_GetAttr(reinterpret_cast<PyObject*>(type), name));
  const dlpack::Exchange* table = nullptr;
  if (capsule.is_valid())
    table = static_cast<const dlpack::Exchange*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  PyErr_Clear();  // it has none
  while (table && (table->version.major != 1 || !table->lend)) table = table->older;
  constexpr size_t kRemembered = 32;
  if (known.size() < kRemembered) {
    Py_INCREF(type);
    known.emplace_back(type, table);
  }
  return table;
}

// Streams as __dlpack__ takes them: the null stream is 1 there.
nb::object dlpack_stream(const Stream& s) {
  return nb::int_(s.handle ? reinterpret_cast<uintptr_t>(s.handle) : uintptr_t{1});
}

}  // namespace

Array::Array(nb::handle object, Stream& stream) {
  bool taken = take_buffer(object) || take_exchange(object, stream) || take_dlpack(object, stream) ||
               take_interface(object, "__cuda_array_interface__", stream) ||
               take_interface(object, "__array_interface__", stream);
  require(
      taken, "an object of type ", class_name(object),
      " was given, which lends no memory; allowed is what has the buffer protocol, __dlpack__ or __array_interface__");
  for (int64_t d : dims) require(d >= 0, "an array of sizes ", dims, " was given");
  tsr::volume(dims);  // raises where they multiply to too much
}

Lease::Lease(Lease&& other) noexcept
    : buffer(std::exchange(other.buffer, std::nullopt)),
      managed(std::exchange(other.managed, nullptr)),
      versioned(std::exchange(other.versioned, nullptr)),
      owner(std::move(other.owner)) {}

Lease::~Lease() {
  if (buffer) PyBuffer_Release(&*buffer);
  if (managed && managed->release) managed->release(managed);
  if (versioned && versioned->release) versioned->release(versioned);
}

bool Array::take_buffer(nb::handle object) {
  if (!PyObject_CheckBuffer(object.ptr())) return false;
  Py_buffer b;
  if (PyObject_GetBuffer(object.ptr(), &b, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
    PyErr_Clear();  // numpy has types that the protocol cannot name; the array interface can
    return false;
  }
  lease_.buffer = b;
  data = b.buf;
  element = element_of_format(b.format ? b.format : "B", static_cast<int>(b.itemsize));
  writable = !b.readonly;
  for (int i = 0; i < b.ndim; ++i) {
    require(b.itemsize > 0 && b.strides[i] % b.itemsize == 0, "an array was given whose strides in bytes, ",
            b.strides[i], " among them, are no whole numbers of elements of ", b.itemsize, " bytes");
    dims.push_back(b.shape[i]);
    strides.push_back(b.strides[i] / b.itemsize);
  }
  return true;
}

bool Array::take_exchange(nb::handle object, Stream& stream) {
  const dlpack::Exchange* table = exchange_of(Py_TYPE(object.ptr()));
  if (!table) return false;
  if (table->lend(object.ptr(), &lease_.versioned) != 0) throw nb::python_error();
  describe(lease_.versioned->tensor);
  writable = !(lease_.versioned->flags & dlpack::kReadOnly);
  // What is lent is ready in the library's current stream, and in no other.
  if (!on_host && !stream.known) {
    if (!table->current_stream || table->current_stream(dlpack::kCuda, gpu, &stream.handle) != 0)
      throw nb::python_error();
    stream.known = true;
  }
  return true;
}

bool Array::take_dlpack(nb::handle object, Stream& stream) {
  static PyObject* const method = interned("__dlpack__");
  static PyObject* const place = interned("__dlpack_device__");
  static PyObject* const version = nb::make_tuple(1, 1).release().ptr();
  nb::object lend = nb::steal(PyObject_GetAttr(object.ptr(), method));
  if (!lend.is_valid()) {
    PyErr_Clear();
    return false;
  }
  auto device = nb::cast<nb::tuple>(nb::borrow(object).attr(nb::handle(place))());
  require(device.size() == 2, "__dlpack_device__ of an object of type ", class_name(object), " returned ",
          device.size(), " values; it must return 2");
  nb::object ready_in = nb::none();
  if (nb::cast<int>(device[0]) == dlpack::kCuda) {
    if (!stream.known) stream = {true, current_stream(object, nb::cast<int>(device[1]))};
    ready_in = dlpack_stream(stream);
  }
  nb::object capsule;
  try {
    if (ready_in.is_none())
      capsule = lend(nb::arg("max_version") = nb::handle(version));
    else
      capsule = lend(nb::arg("stream") = ready_in, nb::arg("max_version") = nb::handle(version));
  } catch (nb::python_error& e) {
    if (!e.matches(PyExc_TypeError)) throw;
    capsule = ready_in.is_none() ? lend() : lend(nb::arg("stream") = ready_in);  // from before DLPack had versions
  }
  if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
    auto* given = static_cast<dlpack::Versioned*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
    require(given->version.major == 1, "an array was given as DLPack of version ", given->version.major,
            "; allowed is version 1");
    lease_.versioned = given;
    PyCapsule_SetName(capsule.ptr(), "used_dltensor_versioned");
    describe(lease_.versioned->tensor);
    writable = !(lease_.versioned->flags & dlpack::kReadOnly);
  } else if (PyCapsule_IsValid(capsule.ptr(), "dltensor")) {
    lease_.managed = static_cast<dlpack::Managed*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
    PyCapsule_SetName(capsule.ptr(), "used_dltensor");
    describe(lease_.managed->tensor);
  } else {
    fail(Status::bad_parameter, "__dlpack__ of an object of type ", class_name(object),
         " returned no DLPack capsule, or one that was used before");
  }
  return true;
}

void Array::describe(const dlpack::Tensor& t) {
  on_host = t.device.type == dlpack::kCpu || t.device.type == dlpack::kCudaHost;
  require(on_host || t.device.type == dlpack::kCuda || t.device.type == dlpack::kCudaManaged,
          "an array on a device of DLPack's type ", t.device.type, " was given; allowed are the host and CUDA");
  gpu = t.device.index;
  data = static_cast<std::byte*>(t.data) + t.byte_offset;
  element = element_of(t.element);
  for (int i = 0; i < t.rank; ++i) dims.push_back(t.dims[i]);
  if (!t.strides) {
    strides = tsr::packed_strides(dims);
    return;
  }
  for (int i = 0; i < t.rank; ++i) strides.push_back(t.strides[i]);
}

bool Array::take_interface(nb::handle object, const char* name, Stream& stream) {
  nb::object value = nb::getattr(object, name, nb::none());
  if (value.is_none()) return false;
  auto description = nb::cast<nb::dict>(value);
  lease_.owner = nb::borrow(object);
  auto text = nb::cast<std::string>(description["typestr"]);
  require(text.size() >= 3 && text[0] != '>', "an array of elements '", text,
          "' was given; allowed are those in the order of bytes of this machine");
  int bytes = std::atoi(text.c_str() + 2);
  element = element_of(text[1], bytes);
  auto memory = nb::cast<nb::tuple>(description["data"]);
  data = reinterpret_cast<void*>(nb::cast<uintptr_t>(memory[0]));
  writable = !nb::cast<bool>(memory[1]);
  for (nb::handle d : nb::cast<nb::tuple>(description["shape"])) dims.push_back(nb::cast<int64_t>(d));
  nb::object steps = description.attr("get")("strides");
  if (steps.is_none()) {
    strides = tsr::packed_strides(dims);
  } else {
    for (nb::handle s : nb::cast<nb::tuple>(steps)) {
      auto step = nb::cast<int64_t>(s);
      require(bytes > 0 && step % bytes == 0, "an array was given whose strides in bytes, ", step,
              " among them, are no whole numbers of elements of ", bytes, " bytes");
      strides.push_back(step / bytes);
    }
    require(strides.size() == dims.size(), "an array of ", dims.size(), " dimensions was given with ", strides.size(),
            " strides");
  }
  if (std::strcmp(name, "__cuda_array_interface__") != 0) return true;
  on_host = false;
  nb::object where = nb::getattr(object, "device", nb::none());
  gpu = nb::cast<int>(nb::getattr(where, "id", nb::int_(0)));
  if (!stream.known) stream = {true, current_stream(object, gpu)};
  // Where the memory is being written in another stream, that work has to be over.
  nb::object busy = description.attr("get")("stream");
  if (!busy.is_none()) {
    auto* other = reinterpret_cast<void*>(nb::cast<uintptr_t>(busy));
    if (other != stream.handle) tsr::synchronize(tsr::cuda_device(gpu), other);
  }
  return true;
}

std::string to_text(const Array& a) {
  return tsr::cat(element_text(a.element), a.dims, a.on_host ? " on the host" : tsr::cat(" on GPU ", a.gpu));
}

void check(const Array& a, const tsr::Tensor& t, bool produced, const tsr::Device& device) {
  const char* what = produced ? "output " : "input ";
  auto wrong = [&](const auto&... parts) {
    fail(Status::bad_parameter, what, tsr::describe(t), " was given an array of ", to_text(a), parts...);
  };
  bool wants_host = t.by_value || !tsr::is_gpu(device);
  if (a.on_host != wants_host) wrong("; its memory must be on ", wants_host ? "the host" : device.name);
  if (!wants_host && a.gpu != device.index) wrong("; its memory must be on GPU ", device.index);
  if (produced && !a.writable) wrong(", which may only be read");
  int64_t elements = tsr::volume(a.dims);
  if (!a.data && elements > 0) wrong(" without memory: it was freed");
  if (given_as_bytes(t)) {
    if (a.element.bits != 8) wrong("; elements of its type are given as an array of bytes");
    if (!same_strides(a.dims, a.strides, tsr::packed_strides(a.dims))) wrong(" with gaps between its bytes");
    if (t.ragged == tsr::kNone && elements < t.bytes()) wrong(" of ", elements, " bytes; it needs ", t.bytes());
    return;
  }
  bool right_type =
      a.element.type == t.dtype || (a.element.plain && !common(t.dtype) && a.element.bits == tsr::info(t.dtype).bits);
  if (!right_type) wrong("; its elements must be ", t.dtype);
  if (t.ragged != tsr::kNone) {
    // Sizes follow from the offsets; the packed memory itself is given as it is.
    if (!same_strides(a.dims, a.strides, tsr::packed_strides(a.dims))) wrong(" with gaps between its elements");
    return;
  }
  bool one_value = t.by_value && elements == 1;  // of any rank
  if (one_value) return;
  if (a.dims != t.dims) wrong("; its sizes must be ", t.dims);
  if (elements > 0 && !same_strides(t.dims, a.strides, t.strides))
    wrong(" with strides ", a.strides, "; its strides must be ", t.strides);
}

DType dtype_of(nb::handle name) {
  static constexpr std::array<std::pair<std::string_view, DType>, 19> kOthers = {{
      {"float64", DType::f64},
      {"float32", DType::f32},
      {"float16", DType::f16},
      {"bfloat16", DType::bf16},
      {"float8_e4m3fn", DType::e4m3},
      {"float8_e5m2", DType::e5m2},
      {"float8_e8m0fnu", DType::e8m0},
      {"float4_e2m1fn", DType::e2m1},
      {"int64", DType::i64},
      {"int32", DType::i32},
      {"int8", DType::i8},
      {"uint8", DType::u8},
      {"int4", DType::i4},
      {"uint4", DType::u4},
      {"bool", DType::boolean},
      {"complex64", DType::c64},
      {"complex128", DType::c128},
      {"double", DType::f64},
      {"float", DType::f32},
  }};
  // Types of numpy are classes, or objects that print as their names.
  auto given = nb::cast<std::string>(nb::str(nb::getattr(name, "__name__", name)));
  std::string_view word = given;
  if (size_t dot = word.rfind('.'); dot != std::string_view::npos) word.remove_prefix(dot + 1);
  if (auto t = tsr::find_dtype(word)) return *t;
  for (const auto& [spelling, type] : kOthers)
    if (word == spelling) return type;
  std::vector<std::string> names;
  for (const tsr::DTypeInfo& i : tsr::dtypes()) names.emplace_back(i.name);
  fail(Status::bad_parameter, "'", given, "' is no data type; allowed are ", tsr::any_of_text(names));
}

}  // namespace tessera::python
