# Copyright (c) 2026 The weir authors
# Distributed under the Boost Software License, Version 1.0. (See LICENSE or https://www.boost.org/LICENSE_1_0.txt)

# Sidekiq, as Debian has it, on the server of the benchmark: prints "NAME VALUE" lines. See redis.cpp.
#
#     ruby redis_sidekiq.rb PORT JOBS

require 'sidekiq'
require 'sidekiq/launcher'
require 'logger'

port, jobs = ARGV.map(&:to_i)
Redis.sadd_returns_boolean = false if Redis.respond_to?(:sadd_returns_boolean=)
Sidekiq.logger = Logger.new(File::NULL)
redis = { url: "redis://127.0.0.1:#{port}/1", size: 20 }
Sidekiq.configure_client { |c| c.redis = redis }
Sidekiq.configure_server { |c| c.redis = redis }

def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

$ran = Queue.new

class Noop
  include Sidekiq::Worker
  sidekiq_options queue: 'bench', retry: false
  def perform(_) = ($ran << 1)
end

class Stamp
  include Sidekiq::Worker
  sidekiq_options queue: 'bench', retry: false
  def perform(sent) = ($ran << (now - sent))
end

def rate(n)
  from = now
  yield
  n / (now - from)
end

few = [jobs / 10, 1].max
puts "push #{rate(few) { few.times { |i| Noop.perform_async(i) } }}"
rest = jobs - few
puts "push_bulk #{rate(rest) do
  (0...rest).each_slice(1000) do |s|
    Sidekiq::Client.push_bulk('class' => Noop, 'args' => s.map { |i| [i] })
  end
end}"

options = Sidekiq.options.merge(queues: ['bench'], concurrency: 10, timeout: 1, labels: [])
launcher = Sidekiq::Launcher.new(options)
puts "process #{rate(jobs) do
  launcher.run
  jobs.times { $ran.pop }
end}"

waits = Array.new(300) do
  sleep 0.005
  Stamp.perform_async(now)
  $ran.pop
end.sort
puts "latency_p50 #{waits[waits.size / 2] * 1e6}"
puts "latency_p99 #{waits[waits.size * 99 / 100] * 1e6}"
$stdout.flush
launcher.quiet
exit!
