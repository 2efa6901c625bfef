// SPDX-License-Identifier: Apache-2.0
// Memory objects export their bytes by the buffer protocol, and free them when nobody looks at them any more.
#include "python/extension/memory.hpp"

#include <new>

#include "python/extension/buffers.hpp"
#include "python/extension/context.hpp"
#include "python/extension/errors.hpp"
#include "python/extension/farewell.hpp"

namespace torii_python {
namespace {

PyTypeObject* memory_type = nullptr;
PyTypeObject* region_type = nullptr;

struct MemoryObject {
  PyObject head;
  ContextObject* context;
  void* address;
  Py_ssize_t bytes;
};

struct RegionObject {
  PyObject head;
  ContextObject* context;
  torii_region* region;
  Buffer* buffer;  // of the adopted object, which keeps its memory in its place
};

MemoryObject* memory_of(PyObject* self) { return reinterpret_cast<MemoryObject*>(self); }
RegionObject* region_of(PyObject* self) { return reinterpret_cast<RegionObject*>(self); }

void hold(ContextObject*& member, PyObject* context) {
  member = context_of(Py_NewRef(context));
  ++member->memories;
}

void give_up(ContextObject* context) {
  if (context == nullptr) return;
  --context->memories;
  Py_DECREF(reinterpret_cast<PyObject*>(context));
}

/// True if what the object has of its context is still this process's to give back.
bool is_ours(const ContextObject* context) {
  return context != nullptr && context->context != nullptr && context->owner == getpid() && !is_leaving();
}

void memory_dealloc(PyObject* object) {
  MemoryObject* const self = memory_of(object);
  if (is_ours(self->context) && self->address != nullptr) torii_free(self->context->context, self->address);
  give_up(self->context);
  free_object(object);
}

int memory_get_buffer(PyObject* object, Py_buffer* view, int flags) {
  return PyBuffer_FillInfo(view, object, memory_of(object)->address, memory_of(object)->bytes, 0, flags);
}

torii_status release_region(RegionObject* self) {
  torii_status status = TORII_OK;
  if (self->region != nullptr && is_ours(self->context)) {
    status = torii_deregister(self->context->context, self->region);
  }
  self->region = nullptr;
  delete self->buffer;
  self->buffer = nullptr;
  give_up(self->context);
  self->context = nullptr;
  return status;
}

void region_dealloc(PyObject* object) {
  release_region(region_of(object));
  free_object(object);
}

PyObject* region_release(PyObject* self, PyObject*) {
  const torii_status status = release_region(region_of(self));
  if (status != TORII_OK) return raise_status(status, nullptr);
  Py_RETURN_NONE;
}

PyObject* region_enter(PyObject* self, PyObject*) { return Py_NewRef(self); }
PyObject* region_exit(PyObject* self, PyObject*) { return region_release(self, nullptr); }

PyMethodDef region_methods[] = {
    {"release", entry<region_release>, METH_NOARGS,
     "Makes the memory private again, contents kept. Not while a call uses it. A second release does nothing."},
    {"__enter__", entry<region_enter>, METH_NOARGS, nullptr},
    {"__exit__", entry<region_exit>, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};

bool add_type(PyObject* module, const char* name, PyType_Spec& spec, PyTypeObject*& type) {
  type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return type != nullptr && PyModule_AddObjectRef(module, name, reinterpret_cast<PyObject*>(type)) == 0;
}

}  // namespace

PyObject* allocate_memory(PyObject* context, PyObject* bytes) {
  if (!is_usable(context_of(context))) return nullptr;
  const Py_ssize_t count = PyLong_AsSsize_t(bytes);
  if (count == -1 && PyErr_Occurred() != nullptr) return nullptr;
  if (count < 0) return value_error("bytes is %zd; it must not be negative", count) ? context : nullptr;
  Owned object(reinterpret_cast<PyObject*>(allocate_object<MemoryObject>(memory_type)));
  if (!object) return nullptr;
  MemoryObject* const self = memory_of(object.get());
  hold(self->context, context);
  // An empty array has an address too.
  const auto least = static_cast<std::size_t>(count == 0 ? 1 : count);
  const torii_status status = torii_allocate(self->context->context, least, &self->address);
  if (status != TORII_OK) return raise_status(status, nullptr);
  self->bytes = count;
  return object.release();
}

PyObject* adopt_memory(PyObject* context, PyObject* buffer) {
  if (!is_usable(context_of(context))) return nullptr;
  Owned object(reinterpret_cast<PyObject*>(allocate_object<RegionObject>(region_type)));
  if (!object) return nullptr;
  RegionObject* const self = region_of(object.get());
  hold(self->context, context);
  self->buffer = new (std::nothrow) Buffer;
  if (self->buffer == nullptr) return PyErr_NoMemory();
  if (!self->buffer->acquire(buffer, "buffer", true)) return nullptr;
  // With the GIL, so that no other Python thread writes on these pages meanwhile.
  const torii_status status = torii_register(self->context->context, self->buffer->address(), self->buffer->bytes(),
                                             TORII_REGISTER_ADOPT, &self->region);
  return status == TORII_OK ? object.release() : raise_status(status, nullptr);
}

bool add_memory_types(PyObject* module) {
  PyType_Slot memory_slots[] = {{Py_tp_dealloc, slot(memory_dealloc)},
                                {Py_bf_getbuffer, slot(memory_get_buffer)},
                                {Py_tp_doc, const_cast<char*>("Bytes that peers on the node reach in place.")},
                                {0, nullptr}};
  PyType_Slot region_slots[] = {{Py_tp_dealloc, slot(region_dealloc)},
                                {Py_tp_methods, region_methods},
                                {Py_tp_doc, const_cast<char*>("Memory of an array that peers on the node reach in "
                                                              "place, until release() or the end of a with block.")},
                                {0, nullptr}};
  constexpr unsigned kFlags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION;
  PyType_Spec memory = {"torii._torii.Memory", sizeof(MemoryObject), 0, kFlags, memory_slots};
  PyType_Spec region = {"torii._torii.Region", sizeof(RegionObject), 0, kFlags, region_slots};
  return add_type(module, "Memory", memory, memory_type) && add_type(module, "Region", region, region_type);
}

}  // namespace torii_python
