#!lua name=warmq
-- base.lua - what every function stands on: names of keys, the clock, refusals, events.
--
-- The files of this folder are joined, in the order of meson.build, to one library: one
-- Lua function, called once, because `string`, `redis.call` and their like are missing
-- while Redis loads a library.  They share its locals.  A function of docs/PROTOCOL.md
-- runs in three phases:
--
--   check    reads everything it needs and everything it is going to write, so that a
--            key of a wrong type stops it here; decides; may refuse          (call)
--   state    writes keys that only WarmQ writes, which cannot fail any more   (call)
--   deliver  replies, results, events, wake-ups: what others may have spoilt  (quiet)
--
-- Between check and state nothing is kept but Lua values.  book.lua holds them and has
-- the one place that writes records; a function adds its own writes behind that.
--
-- The library remembers nothing between two calls except tables that are pure functions
-- of strings (the memos), what slots hold and where the next job of a session comes from,
-- valid while the stamp in Redis is where this library has left it (clock, recall.lua),
-- and when a reply list was last given its time (finish.lua).  No effect depends on the
-- order of `pairs`.
--
-- Commands used: TIME, TYPE EXISTS DEL SET GET GETRANGE INCRBY STRLEN PEXPIRE PTTL, HGET
-- HMGET HSET HDEL HLEN HGETALL HKEYS HINCRBY HEXISTS, LLEN LRANGE LINDEX LTRIM LREM LPUSH
-- RPUSH, SADD SREM SMEMBERS SCARD, ZADD ZREM ZSCORE ZCARD ZRANGE ZRANGEBYSCORE
-- ZREVRANGEBYSCORE, XLEN XRANGE XREVRANGE XADD XDEL XTRIM, PUBLISH.

local function library() -- ends in register.lua

local byte, find, format, match = string.byte, string.find, string.format, string.match
local gsub, sub = string.gsub, string.sub
local floor, max, min = math.floor, math.max, math.min
local concat, sort = table.concat, table.sort
local pcall, tonumber, type, unpack = pcall, tonumber, type, unpack

-- The collector looks through as many bytes as are allocated, not twice as many: Redis
-- drives it on besides, at every 50th call.  What is garbage lies about somewhat longer
-- (docs/decisions/0082).
collectgarbage('setstepmul', 100)

local NEVER = 99999999999999 -- an `until` without end
local DAY = 86400000

local call, quiet = redis.call, redis.pcall
local key -- names of the fixed keys; key.ns is the prefix of all others
local now -- ms of the Redis clock, one reading per call
local argv, argc -- arguments behind the protocol number are argv[2] to argv[argc]

-- ---- refusals ----------------------------------------------------------------------

-- Ends the check phase with an error that names the argument at fault.
local function refuse(argument, what)
	error({ refused = argument .. ': ' .. what }, 0)
end

local function number_at(i, name, most)
	local text = argv[i]
	if not text or not find(text, '^%d+$') or #text > 14 then
		refuse(name, 'expected a number, got "' .. sub(text or '', 1, 40) .. '"')
	end
	local n = text + 0
	if most and n > most then
		refuse(name, 'at most ' .. format('%d', most) .. ', got ' .. text)
	end
	return n
end

-- Slots are fields of a hash: one number has one name.
local function slot_at(i)
	local slot = argv[i]
	if not slot or #slot > 5 or find(slot, '[^0-9]') or slot == '' or
		(byte(slot, 1) == 48 and #slot > 1) then
		refuse('slot', 'expected a number below 65536, got "' .. sub(slot or '', 1, 40) .. '"')
	end
	return slot
end

local function text_at(i, name)
	return argv[i] or refuse(name, 'is missing')
end

local function nonce_at(i)
	local nonce = text_at(i, 'nonce')
	if #nonce ~= 16 or find(nonce, '[^0-9a-f]') then
		refuse('nonce', 'expected 16 hex digits, got "' .. sub(nonce, 1, 40) .. '"')
	end
	return nonce
end

local function is_name(text)
	return #text <= 128 and find(text, '^[%w._-]+$') ~= nil
end

local function fits_64_bits(digits)
	return #digits < 20 or #digits == 20 and digits <= '18446744073709551615'
end

-- An id as it is printed: Redis finds an entry by "007-1", too, and nobody else does.
local function is_job(id)
	local ms, seq, part = match(id, '^(%d+)%-(%d+)(.*)$')
	return ms ~= nil and #id <= 60 and not find(ms, '^0.') and not find(seq, '^0.') and
		(#id < 22 or fits_64_bits(ms) and fits_64_bits(seq)) and
		(part == '' or find(part, '^%.[1-9]%d*$') ~= nil)
end

-- ---- keys --------------------------------------------------------------------------

local memo -- by kind of text: what it says; count of all
local recall = {} -- what slots hold, see recall.lua: tables, size, stamp

function recall.reset()
	recall.tables, recall.size, recall.stamp = {}, 0, nil
end

local memo_reset, memo_grow
do

local MEMO_MAX = 4096 -- entries before all is forgotten

function memo_reset()
	memo = { lane = {}, family = {}, session = {}, list = {}, reply = {},
		lease = {}, run_view = {}, score = {}, given = {}, ttl = {},
		count = 0 }
end

-- Counts what is remembered, so that names of long gone lanes do not pile up.
function memo_grow()
	memo.count = memo.count + 1
	if memo.count > MEMO_MAX then
		memo_reset()
	end
end

end

local bind
do

local FIXED = { 'jobs', 'families', 'lanes', 'pools', 'workers', 'dying', 'tickets', 'idle',
	'ends', 'unused', 'unheld', 'later', 'dead', 'deadline', 'ended', 'early', 'look', 'stamp',
	'events', 'wake' }

function bind(meta)
	local ns = match(meta, '^(.+:)meta$')
	if not ns then
		refuse('key', 'expected <namespace>:meta, got "' .. sub(meta, 1, 80) .. '"')
	end
	key = { meta = meta, ns = ns }
	for i = 1, #FIXED do
		key[FIXED[i]] = ns .. FIXED[i]
	end
	memo_reset() -- they hold full key names
	recall.reset()
end

end

-- The stamp is a key whose lifetime ends in some thousand years.  What is left of it tells
-- two things in one look: the time, and whether anybody else has moved its end since; for
-- ends lie hours apart, and so would the time that comes out.  Then, or if nobody has
-- called for hours, Redis is asked for the time, and what was remembered is forgotten.
-- An end moves by uneven steps, so that two histories (a failover, and back) do not meet.
local clock, stamp_move
do

local APART = 16777216 -- ms between two ends, at least: 4.6 hours
local FIRST, ENDS = 1048576, 134217728 -- in the year 2527; how many there are
local seen = 0 -- the time of the last call

function clock()
	local stamp = recall.stamp
	if stamp then
		local ms = stamp - call('PTTL', key.stamp)
		if ms - seen < APART / 2 and seen - ms < APART / 2 then
			seen = ms
			return ms
		end
	end
	recall.reset()
	local time = call('TIME')
	seen = time[1] * 1000 + floor(time[2] / 1000)
	return seen
end

-- Whatever was remembered of lanes, sets and families is not true any more.
function stamp_move()
	local step = 1 + now % 997
	local last = floor((recall.stamp or now) / APART)
	recall.stamp = (FIRST + (last + step * 65539) % ENDS) * APART
	call('SET', key.stamp, '1', 'PXAT', format('%d', recall.stamp))
end

end

-- "a,b,c" as a table; shared, so nobody may change it.
local function list_of(text)
	local list = memo.list[text]
	if not list then
		list = {}
		for item in string.gmatch(text, '[^,]+') do
			list[#list + 1] = item
		end
		memo_grow()
		memo.list[text] = list
	end
	return list
end

-- Redis prints a Lua number with all its digits, which costs more than most commands: where
-- it matters numbers are texts.  Tokens count up, so their last digits repeat.
local number_text, now_text
do

local DIGITS, SMALL = {}, {}
for i = 0, 999 do
	DIGITS[i], SMALL[i] = format('%03d', i), format('%d', i)
end

function number_text(n)
	if n < 1000 then
		return SMALL[n] or format('%d', n)
	end
	local low = n % 1000
	if n - low ~= memo.thousands then
		memo.thousands, memo.thousands_text = n - low, format('%d', (n - low) / 1000)
	end
	return memo.thousands_text .. DIGITS[low]
end

-- The time of this call.
function now_text()
	local seconds = floor(now / 1000)
	if seconds ~= memo.seconds then
		memo.seconds, memo.seconds_text = seconds, format('%d', seconds)
	end
	return memo.seconds_text .. DIGITS[now - seconds * 1000]
end

end

-- ---- ids ---------------------------------------------------------------------------

local function id_split(id)
	local ms, seq, part = match(id, '^(%d+)-(%d+)%.?(%d*)')
	if not ms then
		return 0, 0, 0
	end
	return ms + 0, seq + 0, part == '' and 0 or part + 0
end

local function id_before(a, b)
	local a_ms, a_seq, a_part = id_split(a)
	local b_ms, b_seq, b_part = id_split(b)
	if a_ms ~= b_ms then
		return a_ms < b_ms
	end
	if a_seq ~= b_seq then
		return a_seq < b_seq
	end
	return a_part < b_part
end

-- The time of an id; one from the future is as old as now (its producer's clock erred).
local function id_ms(id)
	return min(match(id, '^(%d+)') + 0, now)
end

-- "<id>[~][/<in>,<out>]"
local function element_id(element)
	return match(element, '^[^~/]+')
end

local function element_is_slim(element)
	return find(element, '~', 1, true) ~= nil
end

-- ---- what happened -----------------------------------------------------------------

local say, wake, count, announce, hush
do

local EVENTS_MAX = 200000

local events, events_n = {}, 0 -- lines
local wakes, wakes_n = {}, 0 -- pools
local counted, counted_n = {}, 0 -- counter, amount

-- Forgets what a call that failed had to say.
function hush()
	events_n, wakes_n, counted_n = 0, 0, 0
end

function say(line)
	events_n = events_n + 1
	events[events_n] = line
end

function wake(pool)
	for i = 1, wakes_n do
		if wakes[i] == pool then
			return
		end
	end
	wakes_n = wakes_n + 1
	wakes[wakes_n] = pool
end

function count(counter, n)
	counted[counted_n + 1] = counter
	counted[counted_n + 2] = n or 1
	counted_n = counted_n + 2
end

-- Delivery: nothing here may undo what is stored, so nothing here may fail.
function announce()
	if events_n > 0 then
		local text = concat(events, '\n', 1, events_n)
		events_n = 0
		local id = quiet('XADD', key.events, 'MAXLEN', '~', EVENTS_MAX, '*', 'e', text)
		if type(id) == 'table' and id.err then
			count('delivery_errors')
		end
	end
	for i = 1, wakes_n do
		quiet('PUBLISH', key.wake, wakes[i])
	end
	wakes_n = 0
	for i = 1, counted_n, 2 do
		quiet('HINCRBY', key.meta, counted[i], counted[i + 1])
	end
	counted_n = 0
end

end
