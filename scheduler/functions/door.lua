-- door.lua - how a call comes in: protocol number, namespace, clock; how it fails.
--
-- The files behind this one keep their locals to themselves (a function has room for 200)
-- and register their functions at their end.

local doors = {} -- by name: what Redis calls
local register
do

local PROTOCOL = '1'

local KINDS = { -- then the fixed keys of that kind
	{ 'stream', 'jobs', 'events' },
	{ 'hash', 'meta', 'families', 'lanes', 'pools', 'idle', 'unheld', 'ended', 'look' },
	{ 'zset', 'workers', 'dying', 'tickets', 'ends', 'unused', 'later', 'dead', 'deadline',
		'early' },
}

-- Redis does not say which key has the wrong type.
local function wrong_keys()
	local found = ''
	for i = 1, #KINDS do
		local wanted = KINDS[i][1]
		for j = 2, #KINDS[i] do
			local own = key[KINDS[i][j]]
			local is = quiet('TYPE', own).ok or 'none'
			if is ~= 'none' and is ~= wanted then
				found = found .. '; ' .. own .. ' is a ' .. is .. ' and should be a ' .. wanted
			end
		end
	end
	return found
end

-- What a function writes with, apart from what it delivers.  Redis looks at the rights of
-- its user at each command, and knows no command that was renamed: a call would be stopped
-- in the middle, with half of its effects.  So all rights are asked for before anything is
-- done, those over keys as well: a result that cannot be stored is lost, since what is
-- delivered stops nobody.  That takes half a job's life: where calls come by the thousand,
-- whose second argument is a session or the owner of the rule, it is asked once a second
-- for each.  Others name a job there, or say `off`: two users may say the same.
local WRITES = { 'HSET', 'HDEL', 'HINCRBY', 'DEL', 'SET', 'RPUSH', 'LPUSH', 'LPOP', 'LTRIM',
	'LREM', 'ZADD', 'ZREM', 'XDEL', 'SADD', 'SREM', 'PEXPIRE' }
local BEHIND = { DEL = 0, LPOP = 0, HSET = 2, HINCRBY = 2, LTRIM = 2, LREM = 2, ZADD = 2 }
local ONES = { '1', '1' } -- as many behind the key as Redis 8 wants to see; 1 if not above
local PARTS = { 'stamp', 'slim:', 'px:', 'ready:', 'back:', 'now:', 'open:', 'held:',
	'session:', 'lease:', 'budget:', 'past:', 'under:', 'result:', 'reply:', 'paid:' }
for i = 1, #KINDS do
	for j = 2, #KINDS[i] do
		PARTS[#PARTS + 1] = KINDS[i][j]
	end
end
local READERS = { glance = true, count = true, version = true }
local BUSY = { admit = true, grant = true, beat = true, claim = true, settle = true,
	begin = true, fail = true, release = true }
local GOOD_MS, CALLERS_MAX = 1000, 1024
local may = redis.acl_check_cmd
local permitted, callers = {}, 0 -- a session, an owner -> when

local function permit()
	for i = 1, #WRITES do
		local word = WRITES[i]
		if not may(word, key.meta, unpack(ONES, 1, BEHIND[word] or 1)) then
			return 'say ' .. word
		end
	end
	for i = 1, #PARTS do
		local own = key.ns .. PARTS[i]
		if not may('HINCRBY', own, '1', '1') then -- it reads and writes
			return 'read and write ' .. own .. (find(own, ':$') and '*' or '')
		end
	end
end

local function remember(who)
	if callers >= CALLERS_MAX then
		permitted, callers = {}, 0
	end
	if not permitted[who] then
		callers = callers + 1
	end
	permitted[who] = now
end

-- Nil, or an error that says what is missing.
local function forbidden(name, who)
	local at = BUSY[name] and permitted[who]
	if at and now >= at and now - at < GOOD_MS then
		return nil
	end
	local fine, missing = pcall(permit)
	if fine and not missing then
		if BUSY[name] then
			remember(who)
		end
		return nil
	end
	permitted[who] = nil
	return redis.error_reply('NOPERM warmq ' .. name .. ': ' .. (fine and
		'this user of Redis may not ' .. missing or
		'a command that WarmQ needs is renamed in this Redis') ..
		'; nothing was done ("Who may do what in Redis" in docs/OPERATIONS.md)')
end

-- The last words of a call that failed.  A refusal names the argument; anything else is
-- a bug or a key of a wrong type, which is counted.
local function failure(name, problem)
	hush()
	if type(problem) == 'table' and problem.refused then
		return redis.error_reply('ERR warmq ' .. name .. ': ' .. problem.refused)
	end
	local text = type(problem) == 'table' and (problem.err or '') or tostring(problem)
	quiet('HINCRBY', key and key.meta or 'warmq:meta', 'function_errors', 1)
	if key and find(text, 'WRONGTYPE', 1, true) then
		text = text .. wrong_keys()
	end
	return redis.error_reply('ERR warmq ' .. name .. ': ' .. gsub(text, '[\r\n]', ' '))
end

-- `own_book`: the function opens its book itself, if it needs one.
function register(name, body, own_book)
	doors[name] = function(keys, args)
		if args[1] ~= PROTOCOL then
			return redis.error_reply('ERR warmq speaks protocol ' .. PROTOCOL .. ', not ' ..
				sub(args[1] or 'none', 1, 20))
		end
		local fine, answer = true, nil
		if not key or key.meta ~= keys[1] then
			fine, answer = pcall(bind, keys[1] or '')
		end
		if fine then
			now, argv, argc = clock(), args, #args
			local stop = not READERS[name] and forbidden(name, args[2] or '')
			if stop then
				return stop
			end
			if not own_book then
				book_open()
			end
			fine, answer = pcall(body)
		end
		return fine and answer or failure(name, answer)
	end
end

end
