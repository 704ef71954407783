import type { CallContext } from '../../../kernel/call-context.ts';
import type { MessageWork } from './run-message.ts';

export interface CommandDeps {
  /** Removes what the model sees of a conversation; its messages stay. */
  readonly reset: (conversationRef: string, call: CallContext) => Promise<unknown>;
  readonly agents: { find(agentId: string): { readonly config: { readonly model?: string | undefined } } | undefined };
}

const help = '/new begins a new conversation, /status says who answers, /help shows this. Everything else goes to the agent.';
const commands = ['/new', '/status', '/help'] as const;
type Command = (typeof commands)[number];

/** Returns the command that a message is; in a group only an owner commands, and nobody with a forwarded text. */
export function commandOf({ text, to, trust, isForwarded = false }: MessageWork): Command | undefined {
  const word = text.trim().toLowerCase();
  const command = commands.find((one) => one === word);
  return isForwarded || (to.conversationKind === 'shared' && trust !== 'owner') ? undefined : command;
}

/** Carries out a command, also a second time after a crash; returns the reply. */
export async function runCommand(command: Command, { target }: MessageWork, call: CallContext, { reset, agents }: CommandDeps): Promise<string> {
  switch (command) {
    case '/new':
      await reset(target.ref, call);
      return 'This is a new conversation.';
    case '/status':
      return `Agent ${target.agentId}, model ${agents.find(target.agentId)?.config.model ?? 'as configured for all agents'}.`;
    case '/help':
      return help;
  }
}
