// SPDX-License-Identifier: Apache-2.0
// Rule "standard_headers": a header includes the standard headers that declare what it names, itself or through headers
// of the project. Other files of a unit, and precompiled headers, hide an include that is missing; this rule reads it.
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <unordered_map>

#include "tests/tidy/rules.hpp"

namespace torii::tidy {
namespace {

/// Names that the same headers declare. Both lists are words with spaces between; any one of the headers will do, and
/// the first is the one to include. A standard header counts for another only where the standard says that it includes
/// it, or that it declares the name too.
struct Declared {
  std::string_view headers;
  std::string_view names;
};

constexpr std::string_view kTablePath = "tests/tidy/standard_headers.cpp";

/// The name after std::, or the nested namespace that stands there.
constexpr auto kStandardNames = std::to_array<Declared>({
    {"algorithm",
     "adjacent_find all_of any_of binary_search clamp copy copy_backward copy_if copy_n count count_if equal "
     "equal_range fill fill_n find find_end find_first_of find_if find_if_not for_each for_each_n generate generate_n "
     "includes inplace_merge is_heap is_permutation is_sorted is_sorted_until lexicographical_compare lower_bound "
     "make_heap max max_element merge min min_element minmax minmax_element mismatch next_permutation none_of "
     "nth_element partial_sort partition partition_point pop_heap prev_permutation push_heap remove_copy remove_if "
     "replace replace_if reverse reverse_copy rotate sample search set_difference set_intersection set_union shuffle "
     "sort sort_heap stable_partition stable_sort swap_ranges transform unique unique_copy upper_bound"},
    {"algorithm ranges", "ranges"},
    {"any", "any any_cast bad_any_cast"},
    {"array", "array to_array"},
    {"atomic",
     "atomic atomic_bool atomic_flag atomic_int atomic_ref atomic_signal_fence atomic_thread_fence memory_order "
     "memory_order_acq_rel memory_order_acquire memory_order_consume memory_order_relaxed memory_order_release "
     "memory_order_seq_cst"},
    {"barrier", "barrier"},
    {"bit",
     "bit_cast bit_ceil bit_floor bit_width countl_one countl_zero countr_one countr_zero endian has_single_bit "
     "popcount rotl rotr"},
    {"bitset", "bitset"},
    {"cctype", "isalnum isalpha isdigit islower isprint isspace isupper isxdigit tolower toupper"},
    {"charconv", "chars_format from_chars from_chars_result to_chars to_chars_result"},
    {"chrono", "chrono chrono_literals"},
    {"cmath",
     "ceil cos exp exp2 fabs floor fma fmax fmin fmod isfinite isinf isnan ldexp llround log log10 log2 lround "
     "nextafter pow round signbit sin sqrt trunc"},
    {"cmath cstdlib", "abs"},
    {"compare", "partial_ordering strong_ordering three_way_comparable weak_ordering"},
    {"complex", "complex"},
    {"concepts",
     "constructible_from convertible_to copyable default_initializable derived_from equality_comparable "
     "floating_point integral invocable movable predicate regular regular_invocable same_as semiregular "
     "signed_integral totally_ordered unsigned_integral"},
    {"condition_variable", "condition_variable condition_variable_any cv_status"},
    {"coroutine", "coroutine_handle suspend_always suspend_never"},
    {"csignal", "raise sig_atomic_t signal"},
    {"cstdarg", "va_list"},
    {"cstddef", "byte max_align_t nullptr_t ptrdiff_t to_integer"},
    {"cstddef cstdio cstdlib cstring ctime cwchar", "size_t"},
    {"cstdint cinttypes",
     "int16_t int32_t int64_t int8_t intmax_t intptr_t uint16_t uint32_t uint64_t uint8_t uintmax_t uintptr_t"},
    {"cstdio",
     "FILE fclose feof ferror fflush fgets fopen fprintf fputc fputs fread fseek ftell fwrite perror printf putchar "
     "puts rename snprintf sscanf vfprintf vsnprintf"},
    {"cstdio algorithm", "remove"},
    {"cstdlib",
     "_Exit abort aligned_alloc at_quick_exit atexit atoi atol calloc exit free getenv malloc qsort quick_exit "
     "realloc strtod strtol strtoll strtoul strtoull system"},
    {"cstring",
     "memchr memcmp memcpy memmove memset strchr strcmp strcpy strcspn strerror strlen strncmp strncpy strrchr strspn "
     "strstr"},
    {"ctime", "clock clock_t gmtime localtime strftime time time_t timespec timespec_get tm"},
    {"deque", "deque"},
    {"exception",
     "current_exception exception exception_ptr make_exception_ptr nested_exception rethrow_exception set_terminate "
     "terminate throw_with_nested uncaught_exceptions"},
    {"execution", "execution"},
    {"filesystem", "filesystem"},
    {"forward_list", "forward_list"},
    {"fstream iosfwd", "fstream ifstream ofstream"},
    {"functional",
     "bind bind_front bit_and bit_or bit_xor cref divides equal_to function greater greater_equal identity invoke "
     "less less_equal logical_and logical_not logical_or mem_fn minus modulus multiplies negate not_equal_to not_fn "
     "placeholders plus ref reference_wrapper"},
    {"functional bitset filesystem memory optional string string_view system_error thread typeindex variant vector",
     "hash"},
    {"future", "async future launch packaged_task promise shared_future"},
    {"initializer_list algorithm array deque forward_list list map queue random ranges regex set stack string "
     "unordered_map unordered_set utility valarray vector",
     "initializer_list"},
    {"iomanip", "quoted setfill setprecision setw"},
    {"ios istream ostream iostream", "hex fixed ios ios_base scientific streamoff streampos streamsize"},
    {"iostream", "cerr cin clog cout"},
    {"istream iosfwd iostream", "istream"},
    {"istream", "ws"},
    {"iterator",
     "advance back_inserter contiguous_iterator distance forward_iterator forward_iterator_tag input_iterator "
     "input_iterator_tag inserter istream_iterator istreambuf_iterator iterator_traits make_move_iterator "
     "make_reverse_iterator move_iterator next ostream_iterator prev random_access_iterator "
     "random_access_iterator_tag reverse_iterator"},
    {"iterator array deque forward_list list map regex set span string string_view unordered_map unordered_set vector",
     "begin cbegin cend crbegin crend data empty end rbegin rend size ssize"},
    {"latch", "latch"},
    {"limits", "numeric_limits"},
    {"list", "list"},
    {"locale", "locale"},
    {"map", "map multimap"},
    {"memory",
     "addressof align allocate_shared allocator allocator_traits assume_aligned bad_weak_ptr construct_at "
     "const_pointer_cast default_delete destroy destroy_at destroy_n dynamic_pointer_cast enable_shared_from_this "
     "make_shared make_unique make_unique_for_overwrite shared_ptr static_pointer_cast to_address uninitialized_copy "
     "uninitialized_fill unique_ptr weak_ptr"},
    {"memory_resource", "pmr"},
    {"mutex",
     "adopt_lock call_once defer_lock lock lock_guard mutex once_flag recursive_mutex scoped_lock timed_mutex "
     "try_lock try_to_lock unique_lock"},
    {"new",
     "align_val_t bad_alloc bad_array_new_length hardware_destructive_interference_size launder nothrow nothrow_t"},
    {"numbers", "numbers"},
    {"numeric",
     "accumulate adjacent_difference exclusive_scan gcd inclusive_scan iota lcm midpoint partial_sum reduce "
     "transform_reduce"},
    {"optional", "bad_optional_access make_optional nullopt nullopt_t optional"},
    {"ostream iosfwd iostream", "ostream"},
    {"ostream iostream", "endl ends flush"},
    {"queue", "priority_queue queue"},
    {"random",
     "bernoulli_distribution default_random_engine discrete_distribution exponential_distribution generate_canonical "
     "geometric_distribution mt19937 mt19937_64 normal_distribution poisson_distribution random_device seed_seq "
     "uniform_int_distribution uniform_real_distribution"},
    {"ranges", "views"},
    {"ratio", "micro milli nano ratio"},
    {"regex", "cmatch regex regex_match regex_replace regex_search smatch sregex_iterator"},
    {"semaphore", "binary_semaphore counting_semaphore"},
    {"set", "multiset set"},
    {"shared_mutex", "shared_lock shared_mutex shared_timed_mutex"},
    {"source_location", "source_location"},
    {"span", "as_bytes as_writable_bytes dynamic_extent span"},
    {"sstream iosfwd", "istringstream ostringstream stringstream"},
    {"stack", "stack"},
    {"stdexcept",
     "domain_error invalid_argument length_error logic_error out_of_range overflow_error range_error runtime_error "
     "underflow_error"},
    {"stop_token", "stop_callback stop_source stop_token"},
    {"streambuf iosfwd", "streambuf"},
    {"string bitset", "basic_string string"},
    {"string", "getline stod stoi stol stoll stoul stoull string_literals to_string u8string wstring"},
    {"string string_view", "char_traits"},
    {"string_view string", "basic_string_view string_view string_view_literals"},
    {"vector deque forward_list list map set string unordered_map unordered_set", "erase erase_if"},
    {"system_error",
     "errc error_category error_code error_condition generic_category make_error_code system_category system_error"},
    {"thread", "jthread this_thread thread"},
    {"tuple", "apply forward_as_tuple ignore make_from_tuple make_tuple tie tuple tuple_cat"},
    {"tuple array ranges utility variant", "get"},
    {"tuple array ranges utility", "tuple_element tuple_element_t tuple_size tuple_size_v"},
    {"type_traits",
     "add_const_t add_pointer_t aligned_storage_t alignment_of_v bool_constant common_type common_type_t conditional "
     "conditional_t conjunction_v decay decay_t disjunction_v enable_if enable_if_t false_type "
     "has_virtual_destructor_v integral_constant invoke_result invoke_result_t is_abstract_v is_arithmetic_v "
     "is_array_v is_assignable_v is_base_of_v is_class_v is_const_v is_constant_evaluated is_constructible_v "
     "is_convertible_v is_copy_assignable_v is_copy_constructible_v is_default_constructible_v is_empty_v is_enum_v "
     "has_unique_object_representations_v is_final_v is_floating_point_v is_function_v is_integral is_integral_v "
     "is_invocable_r_v is_invocable_v "
     "is_lvalue_reference_v is_move_assignable_v is_move_constructible_v is_nothrow_constructible_v "
     "is_nothrow_destructible_v is_nothrow_invocable_v is_nothrow_move_assignable_v is_nothrow_move_constructible_v "
     "is_pointer_v is_reference_v is_same is_same_v is_signed_v is_standard_layout_v is_trivial_v "
     "is_trivially_constructible_v is_trivially_copyable is_trivially_copyable_v is_trivially_destructible_v "
     "is_unsigned_v is_void_v make_signed_t make_unsigned_t negation_v rank_v remove_const_t remove_cv_t "
     "remove_cvref_t remove_extent_t remove_pointer_t remove_reference_t true_type type_identity type_identity_t "
     "underlying_type_t void_t"},
    {"typeindex", "type_index"},
    {"typeinfo", "bad_cast bad_typeid type_info"},
    {"unordered_map", "unordered_map unordered_multimap"},
    {"unordered_set", "unordered_multiset unordered_set"},
    {"utility",
     "as_const cmp_equal cmp_greater cmp_greater_equal cmp_less cmp_less_equal cmp_not_equal declval exchange forward "
     "in_place in_place_t in_place_type in_place_type_t in_range index_sequence index_sequence_for integer_sequence "
     "make_index_sequence make_integer_sequence make_pair move move_if_noexcept pair piecewise_construct swap"},
    {"variant", "bad_variant_access get_if holds_alternative monostate variant variant_alternative_t visit"},
    {"vector", "vector"},
});

/// The same for the headers of the C interface, which any compiler of C reads.
constexpr auto kCNames = std::to_array<Declared>({
    {"stdbool.h", "bool false true"},
    {"stddef.h", "max_align_t offsetof ptrdiff_t"},
    {"stddef.h locale.h stdio.h stdlib.h string.h time.h wchar.h", "NULL"},
    {"stddef.h stdio.h stdlib.h string.h time.h wchar.h", "size_t"},
    {"stddef.h stdlib.h wchar.h", "wchar_t"},
    {"stdint.h inttypes.h",
     "int16_t int32_t int64_t int8_t intmax_t intptr_t uint16_t uint32_t uint64_t uint8_t uintmax_t uintptr_t"},
    {"stdio.h", "FILE"},
});

std::vector<std::string_view> split_at_spaces(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

/// From a name to its Declared::headers.
using HeadersOfNames = std::unordered_map<std::string_view, std::string_view>;

HeadersOfNames headers_of_names(std::span<const Declared> table) {
  HeadersOfNames headers;
  for (const Declared& declared : table) {
    for (const std::string_view name : split_at_spaces(declared.names)) headers.emplace(name, declared.headers);
  }
  return headers;
}

/// The includes of one header, without those of the headers that it includes.
struct Included {
  std::set<std::string, std::less<>> standard;
  std::vector<std::string> project;  ///< paths from the root
};
using IncludedByHeaders = std::map<std::string, Included, std::less<>>;

IncludedByHeaders included_by_headers(const std::vector<SourceFile>& files) {
  IncludedByHeaders all;
  for (const SourceFile& file : files) {
    if (!file.is_header()) continue;
    Included& included = all[file.path];
    for (const Include& include : includes_of(file)) {
      if (include.quoted) {
        included.project.push_back(include.target);
      } else if (include.target.starts_with("torii/")) {
        included.project.push_back("include/" + include.target);
      } else {
        included.standard.insert(include.target);
      }
    }
  }
  return all;
}

/// Whether one of the standard `headers` is included by `path`, itself or through headers of the project.
bool includes_one_of(const std::vector<std::string_view>& headers, const std::string& path,
                     const IncludedByHeaders& all, std::set<std::string>& visited) {
  const auto found = all.find(path);
  if (found == all.end() || !visited.insert(path).second) return false;
  const Included& included = found->second;
  return std::any_of(headers.begin(), headers.end(), [&](auto header) { return included.standard.contains(header); }) ||
         std::any_of(included.project.begin(), included.project.end(),
                     [&](const auto& next) { return includes_one_of(headers, next, all, visited); });
}

/// Checks the names of one file. The first of those that lack the same header is reported, for all of them.
class NamesOfHeader {
 public:
  NamesOfHeader(const SourceFile& file, const IncludedByHeaders& all, std::vector<Violation>& violations)
      : file_(file), all_(all), violations_(violations) {}

  void check_cpp(const HeadersOfNames& known) {
    constexpr std::string_view kStd = "std::";
    for (size_t i = 0; i < file_.code.size(); ++i) {
      const std::string_view code = file_.code[i];
      for (size_t at = code.find(kStd); at != std::string_view::npos; at = code.find(kStd, at + kStd.size())) {
        if (at > 0 && is_word_character(code[at - 1])) continue;
        const std::string_view name = word_at(code, at + kStd.size());
        const auto found = known.find(name);
        if (found != known.end()) {
          check_included("std::", name, found->second, i);
        } else if (!name.empty() && checked_.insert(name).second) {
          report(violations_, "standard_headers", file_, i,
                 "std::" + std::string(name) + " is unknown: add it to kStandardNames in " + std::string(kTablePath));
        }
      }
    }
  }

  void check_c(const HeadersOfNames& known) {
    for (size_t i = 0; i < file_.code.size(); ++i) {
      const std::string_view code = file_.code[i];
      for (size_t at = 0; at < code.size(); ++at) {
        const std::string_view name = word_at(code, at);
        const auto found = known.find(name);
        if (found != known.end()) check_included("", name, found->second, i);
        at += name.size();
      }
    }
  }

 private:
  static std::string_view word_at(std::string_view code, size_t at) {
    size_t end = at;
    while (end < code.size() && is_word_character(code[end])) ++end;
    return code.substr(at, end - at);
  }

  void check_included(std::string_view scope, std::string_view name, std::string_view headers, size_t line) {
    if (!checked_.insert(headers).second) return;
    const std::vector<std::string_view> any = split_at_spaces(headers);
    std::set<std::string> visited;
    if (includes_one_of(any, file_.path, all_, visited)) return;
    report(violations_, "standard_headers", file_, line,
           std::string(scope) + std::string(name) + " needs #include <" + std::string(any.front()) + ">");
  }

  const SourceFile& file_;
  const IncludedByHeaders& all_;
  std::vector<Violation>& violations_;
  std::set<std::string_view> checked_;  ///< lists of headers, and names that no list is known for
};

}  // namespace

void check_standard_headers(const std::vector<SourceFile>& files, std::vector<Violation>& violations) {
  static const HeadersOfNames cpp_names = headers_of_names(kStandardNames);
  static const HeadersOfNames c_names = headers_of_names(kCNames);
  const IncludedByHeaders all = included_by_headers(files);
  for (const SourceFile& file : files) {
    if (file.path.ends_with(".hpp")) NamesOfHeader(file, all, violations).check_cpp(cpp_names);
    if (file.path.starts_with("include/") && file.path.ends_with(".h")) {
      NamesOfHeader(file, all, violations).check_c(c_names);
    }
  }
}

}  // namespace torii::tidy
