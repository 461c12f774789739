-- ledger.lua - the ledger of the scheduler: its rows, and up to where it has read.
--
-- Rows and cursor are stored in one call, so that after a crash no event is booked twice
-- and none is left out.  What pages show of the recent past goes along (`recent`): it is
-- counted from the same events.  What both the core and the ledger have read is trimmed;
-- the entry at the cursor itself stays, as a witness that nothing behind it was lost.

do

local FIELDS_MAX = 1000 -- of one HSET: Lua's stack is small

local function row_key(i)
	if argv[i] == 'recent' then
		return key.ns .. 'recent'
	elseif argv[i] ~= '' and not find(argv[i], '^%d+$') then
		refuse('key', 'expected an hour, "recent", or nothing')
	end
	return key.ns .. 'ledger' .. (argv[i] == '' and '' or ':' .. argv[i])
end

-- What pages show is worth no refusal: of a wrong type it goes.
local function is_spoilt(name, i)
	local got = argv[i] == 'recent' and quiet('HLEN', name)
	return type(got) == 'table' and got.err ~= nil
end

-- Fields of one hash, which stand together: answers where the next hash begins.
local function rows_store(at, last, ttl)
	local name = row_key(at)
	local args, n = { 'HSET', name }, 2
	local own = argv[at]
	while at <= last and argv[at] == own and n < FIELDS_MAX do
		args[n + 1], args[n + 2] = argv[at + 1], argv[at + 2]
		n = n + 2
		at = at + 3
	end
	call(unpack(args, 1, n))
	if own ~= '' then
		call('PEXPIRE', name, ttl)
	end
	return at
end

-- ledger owner cursor ttl_ms N (hour|recent field value)*N
local function ledger()
	local refused = owner_check()
	local ttl, n = number_at(4, 'ttl_ms'), number_at(5, 'N', 5000)
	local last = 5 + 3 * n
	if last ~= argc then
		refuse('arguments', 'rows do not add up')
	end
	if not find(text_at(3, 'cursor'), '^%d+%-%d+$') then
		refuse('cursor', 'expected an id of the event stream')
	end
	for i = 6, last, 3 do
		row_key(i)
	end
	if refused then
		return refused
	end
	local spoilt
	for i = 6, last, 3 do
		if argv[i] ~= argv[i - 3] or i == 6 then
			if is_spoilt(row_key(i), i) then
				spoilt = row_key(i)
			else
				call('HLEN', row_key(i)) -- so that none is half written
			end
		end
	end
	local told = call('HGET', key.meta, 'events') or '0-0'

	if spoilt then
		call('DEL', spoilt)
	end
	local at = 6
	while at <= last do
		at = rows_store(at, last, ttl)
	end
	call('HSET', key.meta, 'ledger', argv[3])
	quiet('XTRIM', key.events, 'MINID', id_before(told, argv[3]) and told or argv[3])
	return { 'OK', now }
end

register('ledger', ledger)

end
