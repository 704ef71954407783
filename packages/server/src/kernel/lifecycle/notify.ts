import { spawn } from 'node:child_process';

type Environment = Readonly<Record<string, string | undefined>>;

/** Whether a service manager started the daemon: it keeps the output and restarts what exits. */
export function isSupervised(env: Environment): boolean {
  return env['INVOCATION_ID'] !== undefined || env['NOTIFY_SOCKET'] !== undefined;
}

/**
 * Reports the state of a `Type=notify` service to systemd; does nothing without `NOTIFY_SOCKET`. Uses the program that
 * systemd ships, because Node has no datagram sockets in the file system; so the unit needs `NotifyAccess=all`.
 */
export function notifySupervisor(state: 'READY=1' | 'STOPPING=1', env: Environment, onFailure: (error: Error) => void): void {
  const { NOTIFY_SOCKET, PATH } = env;
  if (NOTIFY_SOCKET === undefined || NOTIFY_SOCKET === '') return;
  const child = spawn('systemd-notify', [state], { env: { NOTIFY_SOCKET, ...(PATH !== undefined && { PATH }) }, stdio: 'ignore' });
  child.on('error', onFailure);
  child.on('exit', (code) => {
    if (code !== 0) onFailure(new Error(`systemd-notify exited with ${code}`));
  });
  child.unref();
}
