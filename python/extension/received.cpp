// SPDX-License-Identifier: Apache-2.0
// The sender's rank, the tag and the length of a message.
#include "python/extension/received.hpp"

namespace torii_python {
namespace {

struct ReceivedObject {
  PyObject head;
  torii_received received;
};

PyTypeObject* received_type = nullptr;

const torii_received& received_of(PyObject* self) { return reinterpret_cast<ReceivedObject*>(self)->received; }
bool has_come(PyObject* self) { return received_of(self).rank != TORII_ANY_RANK; }

PyObject* received_rank(PyObject* self, void*) {
  return has_come(self) ? PyLong_FromLong(received_of(self).rank) : Py_NewRef(Py_None);
}
PyObject* received_tag(PyObject* self, void*) {
  return has_come(self) ? PyLong_FromLong(received_of(self).tag) : Py_NewRef(Py_None);
}
PyObject* received_count(PyObject* self, void*) {
  return has_come(self) ? PyLong_FromSize_t(received_of(self).count) : Py_NewRef(Py_None);
}

PyObject* received_repr(PyObject* self) {
  if (!has_come(self)) return PyUnicode_FromString("Received(nothing yet)");
  return PyUnicode_FromFormat("Received(rank=%d, tag=%d, count=%zu)", received_of(self).rank, received_of(self).tag,
                              received_of(self).count);
}

PyGetSetDef received_questions[] = {
    {"rank", received_rank, nullptr, "The rank of the sender; None until a message has come.", nullptr},
    {"tag", received_tag, nullptr, "The tag of the message; None until it has come.", nullptr},
    {"count", received_count, nullptr, "The number of elements that have come; None until then.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace

Owned make_received(torii_received*& place) {
  auto* const self = allocate_object<ReceivedObject>(received_type);
  if (self == nullptr) return Owned();
  self->received.size = sizeof(torii_received);
  self->received.rank = TORII_ANY_RANK;
  place = &self->received;
  return Owned(reinterpret_cast<PyObject*>(self));
}

bool add_received_type(PyObject* module) {
  PyType_Slot slots[] = {{Py_tp_dealloc, slot(free_object)},
                         {Py_tp_repr, slot(received_repr)},
                         {Py_tp_getset, received_questions},
                         {Py_tp_doc, const_cast<char*>("What Team.recv() has got: the sender's rank, the tag and the "
                                                       "number of elements. In a group it is\nfilled at the end.")},
                         {0, nullptr}};
  PyType_Spec spec = {"torii._torii.Received", sizeof(ReceivedObject), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  received_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return received_type != nullptr &&
         PyModule_AddObjectRef(module, "Received", reinterpret_cast<PyObject*>(received_type)) == 0;
}

}  // namespace torii_python
