import type { ChannelCapabilities } from '@gatehouse/contract';
import { discord } from '../../../channels/discord/platform.ts';
import { email } from '../../../channels/email/platform.ts';
import { irc } from '../../../channels/irc/platform.ts';
import { matrix } from '../../../channels/matrix/platform.ts';
import type { Adapter, AdapterDeps, OpenWire, Platform } from '../../../channels/port.ts';
import { slack } from '../../../channels/slack/platform.ts';
import { telegram } from '../../../channels/telegram/platform.ts';
import type { InstanceConfig } from './config.ts';

export interface OpenedPlatform {
  readonly platform: Platform;
  readonly adapter: Adapter;
}

export type OpenPlatform = (config: InstanceConfig, deps: Omit<AdapterDeps<unknown>, 'config'>) => Promise<OpenedPlatform>;

/** The built-in channel: clients of the gateway, and the inbox. */
export const gatewayCapabilities: ChannelCapabilities = {
  channelType: 'gateway',
  features: {
    reactions: false,
    editMessages: false,
    deleteMessages: false,
    fetchHistory: true,
    attachments: true,
    buttons: false,
    polls: false,
    voiceNotes: false,
    typing: false,
    mentions: false,
  },
  limits: { text: 32_768, textUnit: 'utf16', attachmentBytes: 26_214_400 },
  streaming: 'edits',
  threading: 'none',
  chatTypes: ['direct'],
  sendKey: 'transaction',
  actions: [],
};

/** A platform, and how its wire is loaded when an instance is enabled. */
interface Known {
  readonly platform: Platform;
  load(): Promise<OpenWire<never>>;
}

const platforms: Readonly<Record<InstanceConfig['type'], Known>> = {
  discord: { platform: discord, load: async () => (await import('../../../channels/discord/discord.ts')).openDiscord },
  email: { platform: email, load: async () => (await import('../../../channels/email/email.ts')).openEmail },
  irc: { platform: irc, load: async () => (await import('../../../channels/irc/irc.ts')).openIrc },
  matrix: { platform: matrix, load: async () => (await import('../../../channels/matrix/matrix.ts')).openMatrix },
  slack: { platform: slack, load: async () => (await import('../../../channels/slack/slack.ts')).openSlack },
  telegram: { platform: telegram, load: async () => (await import('../../../channels/telegram/telegram.ts')).openTelegram },
};

/** Returns a platform by its type; undefined for an unknown one and for `gateway`. */
export const platformOf = (channelType: string): Platform | undefined =>
  Object.hasOwn(platforms, channelType) ? platforms[channelType as InstanceConfig['type']].platform : undefined;

/** Returns what a platform offers; undefined for an unknown one. */
export const capabilitiesOf = (channelType: string): ChannelCapabilities | undefined =>
  channelType === 'gateway' ? gatewayCapabilities : platformOf(channelType)?.capabilities;

/** Loads the wire of an instance and opens it, without connecting. */
export const openPlatform: OpenPlatform = async (config, deps) => {
  const { platform, load } = platforms[config.type];
  const open = await load();
  return { platform, adapter: open({ ...deps, config: config as never }) };
};
