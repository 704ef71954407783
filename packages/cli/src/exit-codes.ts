/** Exit codes of the command; `start` passes on the daemon's own. */
export const exitCode = { ok: 0, failed: 1, usage: 2, unreachable: 3, refused: 4, incomplete: 5, interrupted: 130 } as const;

export type ExitCode = (typeof exitCode)[keyof typeof exitCode];

/** Sets the exit code of a command that does not throw; `start` passes on the code of the daemon. */
export type SetExit = (code: number) => void;

/** Exit codes with descriptions, for the reference and `gatehouse --help`. */
export const cliExitCodes: readonly { readonly code: ExitCode; readonly text: string }[] = [
  { code: exitCode.ok, text: 'Done.' },
  { code: exitCode.failed, text: 'The server or a check reported a failure; standard error has the reason.' },
  { code: exitCode.usage, text: 'Invalid command line: an unknown command, method or flag, or an invalid value.' },
  { code: exitCode.unreachable, text: 'No daemon responds at the address, or the connection broke.' },
  { code: exitCode.refused, text: 'The token is missing, wrong or too narrow.' },
  { code: exitCode.incomplete, text: '`ask`: the answer ended early, at a limit of its length, steps or budget; standard error has the reason.' },
  { code: exitCode.interrupted, text: 'Interrupted with Ctrl-C.' },
];
