---@use common, last_request

---@each
---@use bucket, quick_take, buckets, any_take
