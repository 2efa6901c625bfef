/* SPDX-License-Identifier: Apache-2.0
 * Stands in for a header of the same name that ompi/op/op.h includes and that Debian's devel tree lacks. */
#pragma once

#if OMPI_SIZEOF_FORTRAN_INTEGER != SIZEOF_INT
#error "Fortran's INTEGER is not as wide as int: op.h then needs Open MPI's own fint_2_int.h"
#endif

#define OMPI_INT_2_FINT(number) ((MPI_Fint)(number))
