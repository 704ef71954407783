import { exitCodes } from './exit-codes.ts';
import { ListenError } from '../gateway/listen-error.ts';
import { ConfigError } from '../kernel/config/config-error.ts';
import { isDiskFull } from '../kernel/disk-full.ts';
import { StartError } from '../kernel/lifecycle/start-error.ts';
import { UnsafePathError } from '../kernel/private-file.ts';

/** Returns the exit code of a failed start. */
export function exitCodeOf(error: unknown): number {
  if (isDiskFull(error)) return exitCodes.disk.code;
  if (error instanceof ConfigError) return exitCodes.config.code;
  if (error instanceof UnsafePathError) return exitCodes.home.code;
  if (error instanceof ListenError) return exitCodes.unavailable.code;
  if (error instanceof StartError && error.reason === 'other_key') return exitCodes.config.code;
  if (error instanceof StartError) return error.reason === 'locked' ? exitCodes.running.code : exitCodes.storage.code;
  return exitCodes.internal.code;
}
