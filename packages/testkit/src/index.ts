export { type AuthorizationServer, startAuthorizationServer } from './authorization-server.ts';
export { type FakeMedia, type MediaAnswer, type MediaRequest, silentWav, soundOf, startFakeMedia, tinyPng } from './fake-media.ts';
export { makeAuthority, makeCertificate, type Pair, writePair } from './certificates.ts';
export { copyHome } from './copy-home.ts';
export { type FakeMatrix, type FakeMatrixOptions, startFakeMatrix } from './fake-matrix.ts';
export type { MatrixAccount } from './fake-matrix-people.ts';
export {
  type DiscordFault,
  type FakeDiscord,
  type FakeDiscordChannel,
  type FakeDiscordOptions,
  type FakeDiscordUser,
  startFakeDiscord,
} from './fake-discord.ts';
export { type FakeAnswer, type FakeProvider, type FakeProviderOptions, type FakeRequest, fakeVector, startFakeProvider } from './fake-provider.ts';
export { type FakeTelegram, startFakeTelegram, type TelegramFault, type TelegramPerson } from './fake-telegram.ts';
export { type FakeSlack, type FakeSlackOptions, type SlackFault, startFakeSlack } from './fake-slack.ts';
export { hasIrcServer, type IrcPerson, type IrcServer, type IrcServerName, joinIrc, startIrcServer } from './irc.ts';
export { hasMailServer, type MailFault, type MailServer, startMailServer } from './mail-server.ts';
export { type Page, servePages } from './pages.ts';
export { makeScheduleCases, oddZones, type ScheduleCase } from './schedule-cases.ts';
export { type SmtpServer, startSmtpServer, whyNoSmtpServer } from './smtp-server.ts';
export { onPostgres, sql, telemetrySql } from './sql.ts';
export { createStepClock, type StepClock } from './step-clock.ts';
export { startTestServer, type TestServer, type TestServerOptions } from './test-server.ts';
