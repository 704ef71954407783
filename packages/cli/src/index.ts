export { runCli } from './cli.ts';
export { cliExitCodes, exitCode } from './exit-codes.ts';
export type { Io } from './io.ts';
