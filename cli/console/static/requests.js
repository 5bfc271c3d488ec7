// Requests to the console, with the token of the printed address.
const token = new URLSearchParams(location.hash.slice(1)).get('token') || '';
const TOKEN_HEADER = 'Quorate-Console-Token';
const GONE = 'The console does not answer. If its command has ended, start it again, and open the '
  + 'address that it prints.';

// Return the JSON of the response. Throw an error with the reason if there is none.
async function answered(path, options, consequence) {
  let answer;
  try {
    answer = await fetch(path, options);
  } catch {
    throw new Error(GONE + consequence);
  }
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

export async function get(path) {
  return answered(path, {headers: {[TOKEN_HEADER]: token}}, '');
}

export async function post(path, values) {
  const headers = {[TOKEN_HEADER]: token, 'Content-Type': 'application/json'};
  return answered(path, {method: 'POST', headers, body: JSON.stringify(values)},
    ' It is not known whether the action was taken: look at the cluster first.');
}
