// SPDX-License-Identifier: Apache-2.0
// A library that only carries the precompiled standard headers of sanitizer builds; nobody links it.
