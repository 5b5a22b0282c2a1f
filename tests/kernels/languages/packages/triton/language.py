constexpr = object()
