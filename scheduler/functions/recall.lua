-- recall.lua - what the slots of a session hold, remembered between calls.
--
--   claim, settle ──► note      slot -> token number, id, where it came from
--   settle        ──► tables    instead of reading the lease back: nothing is more often asked
--   fail, release, bye, attach, reap ──► drop, forget
--
-- Only plain first deliveries are noted.  All writers of leases stand in this library, so
-- what is noted is true as long as nobody else has written: the stamp tells.  It is moved
-- by nearly every call, and recall.stamp follows; where the two differ (another server has
-- ruled meanwhile, a restore, somebody's hand), all is forgotten (clock in base.lua).
-- Forgetting is always right: the slow way reads.  Behind each test of the store a function
-- that only tests have compares all that is remembered with the leases.

do

local SLOTS_MAX = 20000 -- remembered before all is forgotten

function recall.forget(name)
	local own = recall.tables[name]
	if own then
		recall.size = recall.size - own.size
		recall.tables[name] = nil
	end
end

function recall.drop(name, slot)
	local own = recall.tables[name]
	if own and own.q[slot] then
		own.q[slot], own.id[slot], own.home[slot] = nil, nil, nil
		own.size, recall.size = own.size - 1, recall.size - 1
	end
end

function recall.note(name, session, slot, q, id, home)
	if recall.size >= SLOTS_MAX then
		recall.tables, recall.size = {}, 0
	end
	local own = recall.tables[name]
	if not own then
		own = { session = session, size = 0, q = {}, id = {}, home = {} }
		recall.tables[name] = own
	end
	if not own.q[slot] then
		own.size, recall.size = own.size + 1, recall.size + 1
	end
	own.session = session
	own.q[slot], own.id[slot], own.home[slot] = q, id, home
end

end
