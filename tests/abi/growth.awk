# SPDX-License-Identifier: Apache-2.0
# Reads a report of abidiff; ends with 0 if all that it reports is growth: new fields behind the end of structs that
# begin with their size. The library reads and writes only as many bytes of these as the caller says. Every line must
# be one that is known to be harmless.
BEGIN { broken = 0 }
/^$|^(Functions|Variables) changes summary: 0 Removed|^ *[0-9]+ Changed variables?:$/ { next }
/^ *\[C\] '.*' was changed at / { next }
/^ *(type of variable changed|in pointed to type '.*'.*|in unqualified underlying type '.*'.*):$/ { next }
/^ *parameter [0-9]+ of type '.*' has sub-type changes:$/ { next }
/^ *underlying type 'struct torii_(received|context_options|team_options|call|choice)' changed:$/ { next }
/^ *type size changed from [0-9]+ to [0-9]+ \(in bits\)$/ {
  match($0, /from [0-9]+/)
  old_bits = substr($0, RSTART + 5, RLENGTH - 5) + 0
  next
}
/^ *[0-9]+ data member insertions?:$/ { next }
/^ *'.*', at offset [0-9]+ \(in bits\) at / {
  match($0, /at offset [0-9]+/)
  if (substr($0, RSTART + 10, RLENGTH - 10) + 0 >= old_bits) next
}
{ broken = 1 }
END { exit broken }
