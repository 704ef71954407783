import { freePort } from '@gatehouse/testkit/free-port';
import { startFakeProvider } from '../packages/testkit/src/fake-provider.ts';
import { type Daemon, startDaemon } from './lib/daemon.ts';
import { makeHome, removeHome, writeConfig } from './lib/home.ts';
import { proofConfig } from './lib/provider.ts';
import { patientCall } from './lib/rpc.ts';
import { ScriptedDriver, type TerminalProgram, terminalScripts } from './lib/terminal-script.ts';

/** Proves that a scripted model drives real programs on a terminal to the end, whatever else the machine does. */
export interface TerminalReport {
  readonly drives: number;
  /** Drives that did not get to the end of their script, each in one line. */
  readonly wrong: readonly string[];
}

export interface TerminalOptions {
  readonly rounds: number;
  readonly programs?: readonly TerminalProgram[];
  /** Files of proving/broken, by name. */
  readonly broken?: string;
  readonly progress?: (line: string) => void;
}

export async function proveTerminalDrives({ rounds, programs, broken, progress }: TerminalOptions): Promise<TerminalReport> {
  const chosen = programs ?? (Object.keys(terminalScripts) as TerminalProgram[]);
  let driver = new ScriptedDriver([]);
  const provider = await startFakeProvider({
    journal: 0,
    answer: (request) => (request.path.endsWith('/chat/completions') ? driver.answer(request) : undefined),
  });
  const home = await makeHome();
  const port = await freePort();
  const wrong: string[] = [];
  let daemon: Daemon | undefined;
  try {
    await writeConfig(
      home,
      proofConfig(provider.url, { agents: { default: { model: 'local/test-model', tools: { profile: 'coding' }, background: { afterMs: 0 } } } }),
    );
    daemon = await startDaemon({ home, port, readyTimeoutMs: 100_000, ...(broken !== undefined && { broken }) });
    for (let round = 1; round <= rounds; round += 1) {
      for (const program of chosen) {
        driver = new ScriptedDriver(terminalScripts[program](round));
        const sessionKey = { userId: 'prover', channelId: `${program}-${round}` };
        await patientCall(daemon, 'agent.execute', { message: `Drive ${program}`, sessionKey }, { timeoutMs: 600_000 });
        if (driver.outcome !== 'done') wrong.push(`${program} ${round}: ${driver.outcome ?? 'no end'}`);
      }
      if (round % 5 === 0) progress?.(`terminal drives: ${round} of ${rounds} rounds, ${wrong.length} wrong`);
    }
  } finally {
    await daemon?.kill();
    await removeHome(home);
    await provider.close();
  }
  return { drives: rounds * chosen.length, wrong };
}
