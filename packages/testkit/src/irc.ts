export { type IrcPerson, joinIrc } from './irc-client.ts';
export { hasIrcServer, type IrcServer, type IrcServerName, startIrcServer } from './irc-server.ts';
