import {
  AuthenticationError,
  ConnectionError,
  GatehouseError,
  InvalidParamsError,
  MethodNotFoundError,
  PermissionError,
  RateLimitError,
} from '@gatehouse/client';
import { type ExitCode, exitCode } from './exit-codes.ts';

/** A failure detected by the command itself: one sentence, and a hint what to do. */
export class CliError extends Error {
  readonly exitCode: ExitCode;
  readonly hint: string | undefined;
  /** Code for programs, with `--json`; `usage` or `failed` when absent. */
  readonly code: string | undefined;

  constructor(message: string, options: { exitCode?: ExitCode; hint?: string | undefined; code?: string; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.exitCode = options.exitCode ?? exitCode.failed;
    this.hint = options.hint;
    this.code = options.code;
  }
}

export function usageError(message: string, hint?: string): CliError {
  return new CliError(message, { exitCode: exitCode.usage, hint });
}

/** Returns an error for an unreadable file, with a clear reason for common causes: Node's messages name the system call. */
export function unreadable(path: string, error: Error): CliError {
  const reasons: Readonly<Record<string, string>> = {
    ENOENT: 'it does not exist',
    ENOTDIR: 'a part of the path is not a folder',
    EACCES: 'this user may not read it',
    EPERM: 'this user may not read it',
    EISDIR: 'it is a folder',
    ELOOP: 'its links form a loop',
  };
  return usageError(`Cannot read ${path}: ${reasons['code' in error ? String(error.code) : ''] ?? error.message}.`);
}

export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly hint: string | undefined;
  readonly exitCode: ExitCode;
}

/** Returns the message and exit code for any thrown value. */
export function describeFailure(error: unknown): Failure {
  if (error instanceof CliError)
    return {
      code: error.code ?? (error.exitCode === exitCode.usage ? 'usage' : 'failed'),
      message: error.message,
      hint: error.hint,
      exitCode: error.exitCode,
    };
  if (error instanceof GatehouseError) return { code: error.code, message: withRequestId(error), hint: hintFor(error), exitCode: codeFor(error) };
  return { code: 'internal', message: error instanceof Error ? error.message : String(error), hint: undefined, exitCode: exitCode.failed };
}

function withRequestId(error: GatehouseError): string {
  const issues = error.issues
    .map((issue) => (error.message.includes(issue.message) ? '' : `${issue.path}: ${issue.message}`))
    .filter((text) => text !== '');
  const message = [error.message.replace(/\.$/, ''), ...issues].join('; ');
  return error.code === 'internal' && error.requestId !== undefined ? `${message} (request ${error.requestId})` : message;
}

function codeFor(error: GatehouseError): ExitCode {
  if (error instanceof AuthenticationError || error instanceof PermissionError) return exitCode.refused;
  if (error instanceof ConnectionError || error.code === 'client_timeout') return exitCode.unreachable;
  return error instanceof InvalidParamsError ? exitCode.usage : exitCode.failed;
}

function hintFor(error: GatehouseError): string | undefined {
  if (error instanceof AuthenticationError)
    return 'Pass a valid token with --token-file FILE or GATEHOUSE_TOKEN: from `config.yaml`, from `gatehouse tokens create`, or from the file `token` in the home folder.';
  if (error instanceof PermissionError) return 'Use a token with more scopes: `gatehouse tokens list` with an admin token lists them.';
  if (error instanceof ConnectionError) return 'Is the daemon running? `gatehouse start` starts it, `gatehouse doctor` finds the cause.';
  if (error instanceof RateLimitError) return `Try again in ${Math.ceil((error.retryAfterMs ?? 1000) / 1000)} s.`;
  if (error instanceof MethodNotFoundError)
    return 'The daemon may be older than this command: compare `gatehouse --version` with `gatehouse status`.';
  return undefined;
}
