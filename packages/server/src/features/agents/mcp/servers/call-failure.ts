import { AppError } from '../../../../kernel/app-error.ts';
import type { ToolResult } from '../../../../runtime/tool.ts';
import type { ServerRefusal } from '../connection/connection.ts';
import { cleanLabel } from '../tools/clean-text.ts';

/** Returns a server's refusal as the result of a call. The server's own text is from outside, like its results. */
export function renderRefusal({ message }: ServerRefusal, server: string): ToolResult {
  return {
    content: cleanLabel(`The server refused the call: ${message}`, 4096),
    isError: true,
    outside: { source: `mcp server ${server}` },
  };
}

/** Returns the error of a call without a usable answer: it may have had its effect. */
export function callFailure(
  reason: unknown,
  { name, timeoutMs, isConnected }: { readonly name: string; readonly timeoutMs: number; readonly isConnected: boolean },
): AppError {
  if (reason instanceof AppError && reason.code === 'timeout')
    return new AppError('timeout', `The MCP server "${name}" gave no answer within ${timeoutMs} ms; the call may still have had its effect`);
  return new AppError(
    'unavailable',
    isConnected
      ? `The MCP server "${name}" gave no usable answer; the call may have had its effect`
      : `The connection to the MCP server "${name}" ended during the call; it may have had its effect`,
    { cause: reason },
  );
}
