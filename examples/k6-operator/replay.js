// Replays one access log from as many instances as testrun.yaml has (`parallelism`), each its share of the clients.
// Values stand here and not in the environment, since the operator reads the script once without it (k6 archive).
import plimsoll from 'k6/x/plimsoll';

export const options = {
  scenarios: {
    replay: plimsoll.scenario({ instances: 4, maxDuration: '2h' }), // as many as `parallelism`
  },
  thresholds: {
    plimsoll_response: ['p(99.9)<800'], // of each instance by itself; the merged run has that of all
    http_req_failed: ['rate<0.01'],
  },
};

const log = plimsoll.open({
  logs: '/logs/access.log',
  target: 'http://site.example', // the clone, never the site that people use
  speed: 1,
  out: '/results/shards', // a folder of its own for each run
  startAt: 'minute', // all instances begin at the same whole minute
});

export default function () {
  log.replay();
}
