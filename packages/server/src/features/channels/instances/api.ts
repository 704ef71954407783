export type { InstanceConfig } from './config.ts';
