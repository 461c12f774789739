-- finish.lua - ends of jobs, and the history of those that did not end yet.
--
-- finish is the only way to an end that leaves nothing: it takes the payload and the
-- history away.  `bury` is the way to the dead letters, which keep their payload (as slim)
-- and are counted in the `live` of their family, so that its segments stay.
--
-- A job has no record.  Alive means: its payload exists.  Only what cannot be derived is
-- kept, and only for jobs that were handed back: past:<id>.

local payload = {} -- entry, to_slim, new_slim, entry_gone, hints
local past_of, pasts_open, pasts_store, end_result, result_out, finish, bury, family_count
local deliver
local replies = { MAX = 100000 } -- of one list; push, bound, key_of, keep
do

local pasts, past_list

local PAST = { 'attempts', 'recoveries', 'deferrals', 'deferred_at', 'deliveries', 'family',
	'element', 'band', 'now', 'reason', 'why' }
local PAST_NUMBERS = 5 -- the first ones are numbers

function past_of(id)
	local past = pasts[id]
	if not past then
		local own = key.ns .. 'past:' .. id
		local got = call('HMGET', own, unpack(PAST))
		past = { id = id, key = own, exists = got[5] or got[6] }
		for i = 1, #PAST do
			past[PAST[i]] = i <= PAST_NUMBERS and (got[i] or 0) + 0 or got[i] or ''
		end
		pasts[id] = past
		past_list[#past_list + 1] = past
	end
	return past
end

local function past_store(past)
	local args, n = { 'HSET', past.key }, 2
	for i = 1, #PAST do
		local value = past[PAST[i]]
		if value ~= 0 and (value ~= '' or past.anew) then -- anew: over what was there
			args[n + 1], args[n + 2] = PAST[i], i == 4 and format('%d', value) or value
			n = n + 2
		end
	end
	call(unpack(args, 1, n))
end

function pasts_open()
	pasts, past_list = {}, {}
end

function pasts_store()
	for i = 1, #past_list do
		if past_list[i].dirty then
			past_store(past_list[i])
		end
	end
end

-- ---- payloads ----------------------------------------------------------------------

-- The fields of a stream entry, nil if it is gone.
function payload.entry(id)
	if find(id, '.', 1, true) then
		return nil -- packed jobs never stood in the stream by themselves
	end
	local got = call('XRANGE', key.jobs, id, id)
	return got[1] and got[1][2]
end

-- An entry as bytes of a slim key.
local function entry_text(fields)
	local parts = { 'entry\n' }
	for i = 1, #fields do
		parts[#parts + 1] = #fields[i] .. ' '
		parts[#parts + 1] = fields[i]
		parts[#parts + 1] = '\n'
	end
	return concat(parts)
end

local function entry_fields(text)
	local fields, at = {}, 7
	while at <= #text do
		local _, stop, size = find(text, '^(%d+) ', at)
		if not stop then
			return {}
		end
		fields[#fields + 1] = sub(text, stop + 1, stop + size)
		at = stop + size + 2
	end
	return fields
end

function payload.new_slim(id, bytes)
	note('slims_new', id, bytes)
end

function payload.entry_gone(id)
	entries_n = entries_n + 1
	entries_gone[entries_n] = id
end

local function slim_gone(id)
	note('slims_gone', key.ns .. 'slim:' .. id)
end

-- Moves an entry out of the stream; answers whether its payload was there.
function payload.to_slim(id)
	local fields = payload.entry(id)
	if fields then
		payload.new_slim(id, entry_text(fields))
		payload.entry_gone(id)
	end
	return fields ~= nil
end

local HINTS = { 'reply', 'ref', 'traceparent' }
local HINTS_MAX = 65536 -- bytes that are read for them; what is larger is admitted slim

-- The job's own fields win over the flat ones beside it; null is none.
local function hints_overlay(hints, decode, text)
	local fine, job
	if decode and text and #text < HINTS_MAX then
		fine, job = pcall(decode, text)
	end
	for i = 1, fine and type(job) == 'table' and #HINTS or 0 do
		local own = job[HINTS[i]]
		if type(own) == 'string' then
			hints[HINTS[i]] = own
		end
	end
end

-- `reply`, `ref` and `traceparent` of a job, where they can be found without knowing its
-- dialect; `text`: its slim payload, if that is not stored yet.
function payload.hints(id, slim, text)
	local fields, header
	if slim then
		text = text or call('GET', key.ns .. 'slim:' .. id) or ''
		if sub(text, 1, 6) == 'entry\n' then
			fields = entry_fields(text)
		else
			header = '\n' .. sub(text, 1, (find(text, '\n\n', 1, true) or #text + 1)) .. '\n'
		end
	else
		fields = payload.entry(id) or {}
	end
	if header then
		return match(header, '\nreply ([^\n]*)') or '', match(header, '\nref ([^\n]*)'),
			match(header, '\ntraceparent ([^\n]*)')
	end
	local hints = {}
	for i = 1, #fields - 1, 2 do
		hints[fields[i]] = fields[i + 1]
	end
	hints_overlay(hints, cjson and cjson.decode, hints.json)
	hints_overlay(hints, cmsgpack and cmsgpack.unpack, hints.m)
	local reply, ref, trace = hints.reply, hints.ref, hints.traceparent
	return type(reply) == 'string' and reply or '', type(ref) == 'string' and ref or nil,
		type(trace) == 'string' and trace or nil
end

-- ---- ends --------------------------------------------------------------------------

local ESCAPE = { ['"'] = '\\"', ['\\'] = '\\\\', ['\n'] = '\\n', ['\r'] = '\\r',
	['\t'] = '\\t' }

local function json_text(text)
	return '"' .. gsub(text, '[%c"\\]', function(char)
		return ESCAPE[char] or format('\\u%04x', byte(char))
	end) .. '"'
end

-- What a job answers that ended without a worker's result.
function end_result(id, state, reason, text, ref, trace)
	return '{"id":' .. json_text(id) .. (ref and ',"ref":' .. json_text(ref) or '') ..
		',"state":"' .. state .. '","reason":' .. json_text(reason) .. ',"text":' ..
		json_text(text) .. (trace and ',"traceparent":' .. json_text(trace) or '') .. '}'
end

function result_out(id, reply, ttl, result)
	local n = results_n
	results[n + 1], results[n + 2], results[n + 3], results[n + 4] = id, reply, ttl, result
	results_n = n + 4
end

-- The only way to an end without a grave.  `worn`: the job may have a history.
function finish(id, slim, worn)
	if slim then
		slim_gone(id)
	else
		entries_n = entries_n + 1
		entries_gone[entries_n] = id
	end
	if worn then
		note('pasts_gone', key.ns .. 'past:' .. id)
	end
end

-- A family counts its jobs that stand in `later` or `dead`, and its children: all that
-- needs its segments and is seen neither in its lists nor in its lanes.
function family_count(id, change)
	local family = id ~= '' and family_of(id)
	if family and not family.missing then
		family.live = family.live + change
	end
end

-- The way to the dead letters: `past` names what it was.
function bury(past, id, slim, reason, why)
	if not slim and not payload.to_slim(id) and call('EXISTS', key.ns .. 'slim:' .. id) == 0 then
		payload.new_slim(id, '') -- the payload was lost: the grave stays countable
	end
	note('graves', now, id)
	family_count(past.family, 1)
	past.reason, past.why, past.dirty = reason, sub(why, 1, 1000), true
	say('dead ' .. id .. ' ' .. (match(reason, '^[%w_.-]+$') and reason or 'unnamed'))
end

-- ---- delivery ----------------------------------------------------------------------

function replies.keep(id, ttl, result)
	local got = quiet('SET', key.ns .. 'result:' .. id, result, 'PX', max(1, ttl + 0))
	if type(got) == 'table' and got.err then
		count('delivery_errors')
	end
end

-- The key of a reply list, false if the name is none.
function replies.key_of(reply)
	local name = memo.reply[reply]
	if name == nil then
		name = is_name(reply) and key.ns .. 'reply:' .. reply
		memo_grow()
		memo.reply[reply] = name
	end
	return name
end

-- A list that has just got results lives for their time from now on, give or take a
-- sixteenth: so its end is not written at each push.  And it is bounded.
function replies.bound(name, ttl, size, n)
	local given = memo.given[name]
	if size <= n or not given or now < given or (now - given) * 16 > ttl + 0 then
		quiet('PEXPIRE', name, ttl)
		if not given then
			memo_grow()
		end
		memo.given[name] = now
	end
	if size > replies.MAX then
		quiet('LTRIM', name, -replies.MAX, -1)
		count('replies_trimmed', size - replies.MAX)
		announce()
	end
end

-- Hands n results over to one list, or stores them by the ids of their jobs.
function replies.push(reply, ttl, values, ids, n)
	local name = reply ~= '' and replies.key_of(reply)
	local size = name and quiet('RPUSH', name, unpack(values, 1, n))
	if type(size) ~= 'number' then -- a bad name, or somebody's key of another type
		if reply ~= '' then
			count('delivery_errors', n)
		end
		for i = 1, n do
			replies.keep(element_id(ids[i]), ttl, values[i])
		end
		return
	end
	replies.bound(name, ttl, size, n)
end

function deliver()
	local at = 1
	while at <= results_n do
		local reply, ttl = results[at + 1], results[at + 2]
		local ids, values, n = {}, {}, 0
		while at <= results_n and results[at + 1] == reply and results[at + 2] == ttl and
			n < 1000 do
			n = n + 1
			ids[n], values[n] = results[at], results[at + 3]
			results[at + 3] = false -- it can be large: do not keep it until the next call
			at = at + 4
		end
		replies.push(reply, ttl, values, ids, n)
	end
	results_n = 0
	announce()
end

end
