/** A value that a new channel needs. */
export interface SetupField {
  /** Keys below `channels.<name>` that get the value, with dots between objects. */
  readonly paths: readonly [string, ...string[]];
  readonly label: string;
  readonly hint: string;
  /** `off` is a switch that is on without it, `list` has several values, and `secret` goes to the secret store. */
  readonly kind: 'text' | 'number' | 'list' | 'off' | 'secret';
  /** Option of `gatehouse channels add`; secrets are asked for instead. */
  readonly option?: string;
  readonly isRequired?: boolean;
  /** Asked only when the field with this path has a value. */
  readonly onlyWith?: string;
}

/** How a person connects a platform: shown by the command line and the dashboard. */
export interface ChannelSetup {
  readonly title: string;
  /** What is to be done at the platform first. */
  readonly steps: readonly string[];
  readonly fields: readonly SetupField[];
}

const text = (path: string, option: string, label: string, hint: string) => ({ paths: [path], option, label, hint, kind: 'text' }) as const;
const required = (path: string, option: string, label: string, hint: string) => ({ ...text(path, option, label, hint), isRequired: true }) as const;
const secret = (path: string, label: string, hint: string) => ({ paths: [path], label, hint, kind: 'secret', isRequired: true }) as const;

/** Set-up of each platform by its `type`. */
export const channelSetups = {
  irc: {
    title: 'IRC',
    steps: ['Choose a nick that nobody has. On a network with accounts, register one for the agent first.'],
    fields: [
      required('host', '--host <name>', 'Server', 'such as irc.libera.chat'),
      { ...text('port', '--port <n>', 'Port', '6697 when absent'), kind: 'number' },
      { ...text('tls', '--no-tls', 'Without encryption', 'everybody on the way reads along'), kind: 'off' },
      required('nick', '--nick <nick>', 'Nick', 'name of the agent there'),
      { ...text('channels', '--join <channel>', 'Channels to join', 'such as #gatehouse'), kind: 'list' },
      text('sasl.user', '--sasl-user <user>', 'Account', 'to log in to the services of the network'),
      { ...secret('sasl.password', 'Password', 'of the account'), onlyWith: 'sasl.user' },
    ],
  },
  email: {
    title: 'Email',
    steps: [
      'Create a mailbox for the agent alone: it answers what arrives there.',
      'With two-factor authentication, create an app password.',
      'Only senders whose mails pass DMARC or DKIM are recognised.',
    ],
    fields: [
      required('address', '--address <address>', 'Address', 'such as agent@example.org'),
      required('imap.host', '--imap <name>', 'IMAP server', 'such as imap.example.org, port 993'),
      { ...text('imap.port', '--imap-port <n>', 'IMAP port', '993 when absent'), kind: 'number' },
      required('smtp.host', '--smtp <name>', 'SMTP server', 'such as smtp.example.org, port 465'),
      { ...text('smtp.port', '--smtp-port <n>', 'SMTP port', '465 when absent; 587 uses STARTTLS'), kind: 'number' },
      { ...required('imap.user', '--user <user>', 'User', 'mostly the address'), paths: ['imap.user', 'smtp.user'] },
      { ...secret('imap.password', 'Password', 'or app password'), paths: ['imap.password', 'smtp.password'] },
    ],
  },
  telegram: {
    title: 'Telegram',
    steps: [
      'Write /newbot to @BotFather in Telegram, and copy the token.',
      'For groups: /setprivacy decides whether the bot sees messages that do not name it.',
    ],
    fields: [
      secret('token', 'Bot token', 'such as 123456:ABC-DEF'),
      text('apiUrl', '--api-url <url>', 'Address of the Bot API', 'only for an own Bot API server'),
    ],
  },
  discord: {
    title: 'Discord',
    steps: [
      'Create an application at https://discord.com/developers/applications, and copy the token of its page Bot.',
      'Turn on Message Content Intent on the same page.',
      'Invite the bot with the scope bot and the permissions View Channels, Send Messages, Send Messages in Threads, Attach Files, Add Reactions and Read Message History.',
    ],
    fields: [secret('token', 'Bot token', 'from the page Bot'), text('apiUrl', '--api-url <url>', 'Address of the API', 'only for a proxy')],
  },
  slack: {
    title: 'Slack',
    steps: [
      'Create an app at https://api.slack.com/apps from the manifest in the guide, and install it to the workspace.',
      'Create an app-level token with the scope connections:write under Basic Information.',
      'Copy the bot token from OAuth & Permissions.',
    ],
    fields: [
      secret('botToken', 'Bot token', 'begins with xoxb-'),
      secret('appToken', 'App-level token', 'begins with xapp-'),
      text('apiUrl', '--api-url <url>', 'Address of the Web API', 'only for GovSlack or a proxy'),
    ],
  },
  matrix: {
    title: 'Matrix',
    steps: [
      'Create an account for the agent, and log in once to get its access token.',
      'Rooms must be unencrypted: messages of encrypted rooms are not read.',
    ],
    fields: [
      required('homeserver', '--homeserver <url>', 'Homeserver', 'such as https://matrix.example.org'),
      secret('accessToken', 'Access token', 'of the account of the agent'),
    ],
  },
} as const satisfies Readonly<Record<string, ChannelSetup>>;

/** Values of the fields by their first path. */
export type SetupValues = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** Returns the name of the secret of a field of a channel. */
export function setupSecretName(channel: string, field: SetupField): string {
  const key = field.paths[0].split('.').at(-1) ?? '';
  return `CHANNEL_${channel}_${key.replaceAll(/([a-z])([A-Z])/g, '$1_$2')}`.replaceAll('-', '_').toUpperCase();
}

/** A channel that exists. */
interface Existing {
  readonly channelInstanceId: string;
  readonly channelType: string;
  readonly state: string;
}

const secretNamesOf = (type: string, channel: string): string[] => {
  const fields: readonly SetupField[] = Object.entries<ChannelSetup>(channelSetups).find(([one]) => one === type)?.[1].fields ?? [];
  return fields.filter(({ kind }) => kind === 'secret').map((field) => setupSecretName(channel, field));
};

/** Returns why a channel cannot be added, before anything of another one is replaced; one of its type that fails to connect may be set up again. */
export function setupConflict(type: string, name: string, existing: readonly Existing[]): string | undefined {
  if (!/^[a-z0-9](?:[a-z0-9_-]{0,30}[a-z0-9])?$/.test(name) || name === 'gateway')
    return `${name} is not a name for a channel: expected 1 to 32 lower-case letters, digits, "-" or "_"`;
  const secrets = new Set(secretNamesOf(type, name));
  for (const { channelInstanceId: other, channelType, state } of existing) {
    if (other === name && (channelType !== type || state === 'healthy' || state === 'disabled')) return `${name} exists: choose another name`;
    if (other !== name && secretNamesOf(channelType, other).some((one) => secrets.has(one)))
      return `${name} is too like ${other}: choose another name`;
  }
  return undefined;
}

/** Returns the entry `channels.<name>` of a new channel; secrets are references. */
export function setupEntry(type: string, channel: string, fields: readonly SetupField[], values: SetupValues): Record<string, unknown> {
  const entry: Record<string, unknown> = { type };
  for (const field of fields) {
    const value = values[field.paths[0]];
    if (value === undefined || value === '' || (Array.isArray(value) && value.length === 0)) continue;
    for (const path of field.paths) place(entry, path.split('.'), field.kind === 'secret' ? `\${${setupSecretName(channel, field)}}` : value);
  }
  return entry;
}

function place(target: Record<string, unknown>, [key = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) {
    target[key] = value;
    return;
  }
  const inner = (target[key] ?? {}) as Record<string, unknown>;
  target[key] = inner;
  place(inner, rest, value);
}
