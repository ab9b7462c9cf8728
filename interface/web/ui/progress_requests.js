// The requests of a tab that shows its state on a progress line.
/** @import {BranchRequest, News, SentRequest, Server, WaitingNews} from '../core/types.d.ts' */
/** @import {ReadingProgress} from './reading_progress.js' */
import * as header from './header.js';
import {ServerRequests} from '../net/requests.js';

/**
 * Make requests whose failures, and a model that is still loading, are shown on the line. News of another revision than the
 * tab's present one are dropped.
 * @param {Server} server
 * @param {ReadingProgress} line
 * @param {object} tab
 * @param {() => number} tab.revision returns the present revision
 * @param {() => BranchRequest | null} tab.makeRequest
 * @param {(news: News, request: SentRequest) => void} tab.onNews called with all other news
 */
export function progressRequests(server, line, {revision, makeRequest, onNews}) {
  return new ServerRequests({
    server,
    makeRequest,
    onNews: (news, request) => {
      if (request.revision !== revision()) return;
      if (news.state === 'waiting') {
        line.wait(/** @type {WaitingNews} */ (news));
        return;
      }
      header.clearErrors(line);
      onNews(news, request);
    },
    onFailure: sentence => line.show(sentence, 'error'),
    onForgotten: () => {},
  });
}
