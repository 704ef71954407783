import { once } from '@gatehouse/contract';
import * as z from 'zod';

/** An id of Discord. Only what has this form becomes a part of a path. */
const form = /^\d{17,20}$/;
export const Snowflake = once(() => z.string().regex(form, 'expected an id of Discord: 17 to 20 digits'));
export const isSnowflake = (text: string): boolean => form.test(text);

const epochMs = 1_420_070_400_000;

/** Returns the smallest id of a time: ids contain the milliseconds since 2015. */
export const snowflakeAt = (ms: number): string => String(BigInt(Math.max(0, Math.floor(ms) - epochMs)) << 22n).padStart(17, '0');

/** Returns whether the first id is newer than the second. */
export const isNewer = (id: string, than: string): boolean => BigInt(id) > BigInt(than);
