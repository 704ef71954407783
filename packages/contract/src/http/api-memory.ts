import * as z from 'zod';
import { once } from '../once.ts';
import { MemoryHit, MemoryStats } from '../methods/memory.ts';

/** Answer of `GET /api/memory/search`, as of `memory.search`. */
export const ApiMemorySearch = once(() => z.strictObject({ results: z.array(MemoryHit()) }).meta({ id: 'ApiMemorySearch' }));
export type ApiMemorySearch = z.output<ReturnType<typeof ApiMemorySearch>>;

/** Answer of `GET /api/memory/stats`. */
export const ApiMemoryStats = once(() => z.strictObject({ stats: MemoryStats() }).meta({ id: 'ApiMemoryStats' }));
export type ApiMemoryStats = z.output<ReturnType<typeof ApiMemoryStats>>;
