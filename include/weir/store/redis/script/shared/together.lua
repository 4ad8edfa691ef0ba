---@part together
--- The beginning of several calls that travel as one, after `common`, which is theirs together. KEYS:
--- the keys of each, then that of the time; ARGV: the time, how many there are, then the arguments of
--- each but the time. What follows is done for each, with KEYS and ARGV as if it were alone.
local all_keys, all, n, answers = KEYS, ARGV, tonumber(ARGV[2]), {}
local k, a = math.floor(#KEYS / n), (#ARGV - 2) / n
local KEYS, ARGV, together, parted = {}, {ARGV[1]}, {}, {}
KEYS[k + 1] = all_keys[n * k + 1]
local function step()

---@part one_by_one
--- The end of `together`: each has an answer of its own, and an error of its own, with the line where
--- it came up, which the server adds where a script fails alone. Null: it is to be asked by itself, and
--- nothing was done; the same goes for what comes after it and is about the same.
end
for i = 0, n - 1 do
  for j = 1, k do KEYS[j] = all_keys[i * k + j] end
  for j = 2, a + 1 do ARGV[j] = all[i * a + j + 1] end
  local good, answer = true, false
  if not parted[KEYS[1]] then good, answer = pcall(step) end
  if not good then
    if type(answer) ~= 'table' then answer = {err = answer} end
    if answer.line then answer = {err = answer.err .. ' on @user_script:' .. answer.line} end
  end
  if not answer then parted[KEYS[1]] = true end
  answers[i + 1] = answer or false
end
return answers
