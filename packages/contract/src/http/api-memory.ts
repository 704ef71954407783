import * as z from 'zod';
import { MemoryHit, MemoryStats } from '../methods/memory.ts';

/** Answer of `GET /api/memory/search`, as of `memory.search`. */
export const ApiMemorySearch = z.strictObject({ results: z.array(MemoryHit) }).meta({ id: 'ApiMemorySearch' });
export type ApiMemorySearch = z.output<typeof ApiMemorySearch>;

/** Answer of `GET /api/memory/stats`. */
export const ApiMemoryStats = z.strictObject({ stats: MemoryStats }).meta({ id: 'ApiMemoryStats' });
export type ApiMemoryStats = z.output<typeof ApiMemoryStats>;
