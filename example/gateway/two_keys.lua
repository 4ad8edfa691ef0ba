-- Load for the gateway, from two API keys in turn; counts the responses of each kind.
--
--     wrk -t2 -c32 -d20s -s example/gateway/two_keys.lua http://127.0.0.1:8080

local threads = {}
local count = 0

function setup(thread)
  table.insert(threads, thread)
end

function init(args)
  codes = {}
end

function request()
  count = count + 1
  local key = count % 2 == 0 and "ann" or "bob"
  return wrk.format("GET", "/v1/answer", { ["Authorization"] = "Bearer " .. key })
end

function response(status, headers, body)
  codes[status] = (codes[status] or 0) + 1
end

function done(summary, latency, requests)
  local all = {}
  for _, thread in ipairs(threads) do
    for code, number in pairs(thread:get("codes")) do
      all[code] = (all[code] or 0) + number
    end
  end
  for code, number in pairs(all) do
    io.write(string.format("responses %d: %d\n", code, number))
  end
  io.write(string.format("seconds: %.3f\n", summary.duration / 1e6))
end
