/** Events after which any part of the page may differ. */
export const channelEvents = ['channel:', 'diagnostic:channel_health', 'message:sent'] as const;
