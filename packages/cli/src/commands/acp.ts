import type { Command } from 'commander';
import { type ConnectionFlags, connect } from '../connection/target.ts';
import type { Io } from '../io.ts';
import { withOwnJson } from './options.ts';

/** `gatehouse acp`: an agent for editors, over standard input and output. */
export function addAcpCommand(program: Command, io: Io): void {
  withOwnJson(program.command('acp'))
    .summary('serve an agent to an editor, over the Agent Client Protocol')
    .description(
      'Speaks the Agent Client Protocol over standard input and output, so that editors such as Zed and those of JetBrains use an agent of the daemon. The editor starts this command; messages for people are on standard error.',
    )
    .option('--agent <id>', 'agent to use (default: default)')
    .action(async ({ agent, ...flags }: ConnectionFlags & { agent?: string }) => {
      const { client } = await connect(flags, io);
      const { serveAcp } = await import('../acp/agent.ts');
      await serveAcp(client, { agentId: agent }, io);
    });
}
