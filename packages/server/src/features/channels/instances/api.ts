export type { InstanceConfig } from './config.ts';
export type { OpenedPlatform } from './platforms.ts';
