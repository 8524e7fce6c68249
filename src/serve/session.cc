#include "serve/session.h"

#include <algorithm>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <charconv>
#include <cstring>
#include <limits>

namespace lacuna::serve {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

constexpr std::size_t kPiece = 4 << 10;         // a read of headers
constexpr std::size_t kKept = 256 << 10;        // memory that a connection keeps between requests
constexpr std::size_t kMostLingered = 1 << 20;  // bytes read and thrown away before a close

Clock::duration seconds(double value) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(value));
}

std::string_view view_of(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

}  // namespace

Session::Session(asio::ip::tcp::socket socket, Loop& loop, Service& service)
    : socket_(std::move(socket)), loop_(loop), service_(service) {}

void Session::start() {
  Error ignored;
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  next_request();
}

void Session::enter(State state, double wait) {
  state_ = state;
  deadline_ = Clock::now() + seconds(wait);
}

void Session::check(Clock::time_point now) {
  if (state_ == State::closed || state_ == State::answering || now < deadline_) return;
  ++service_.counters().timed_out;
  if (state_ == State::header)
    return refuse_and_close(
        problem(408, fmt::format("the headers took longer than {} s", service_.limits().header_seconds)));
  if (state_ == State::body)
    return refuse_and_close(
        problem(408, fmt::format("the body took longer than {} s", service_.limits().body_seconds)));
  close();
}

void Session::hurry() {
  if (state_ == State::idle)
    deadline_ = std::min(deadline_, Clock::now() + seconds(service_.limits().linger_seconds));
}

void Session::abort() {
  close();
}

void Session::next_request() {
  parser_.emplace();
  parser_->header_limit(static_cast<std::uint32_t>(service_.limits().header_bytes));
  parser_->body_limit(std::numeric_limits<std::uint64_t>::max());  // ours is checked before a body is read
  parser_->eager(false);
  chunks_.reset();
  enter(State::idle, service_.draining() ? service_.limits().linger_seconds : service_.limits().idle_seconds);
  if (buffer_.size() > 0) {
    enter(State::header, service_.limits().header_seconds);
    return parse_header();
  }
  read_more();
}

void Session::read_more() {
  socket_.async_read_some(buffer_.prepare(kPiece),
                          [self = shared_from_this()](Error error, std::size_t size) {
                            if (self->state_ != State::idle && self->state_ != State::header) return;
                            if (error) return self->close();
                            self->buffer_.commit(size);
                            if (self->state_ == State::idle)
                              self->enter(State::header, self->service_.limits().header_seconds);
                            self->parse_header();
                          });
}

void Session::parse_header() {
  Error error;
  const std::size_t used = parser_->put(buffer_.data(), error);
  buffer_.consume(used);
  if (error == http::error::need_more) return read_more();
  if (error) {
    ++service_.counters().received;
    counted_ = true;
    begun_ = Clock::now();
    if (error == http::error::header_limit)
      return refuse_and_close(
          problem(431, fmt::format("the headers have more than {} bytes", service_.limits().header_bytes)));
    if (error == http::error::bad_version)
      return refuse_and_close(problem(505, "this server speaks HTTP/1.1"));
    return refuse_and_close(problem(400, fmt::format("this is not an HTTP request: {}", error.message())));
  }
  if (!parser_->is_header_done()) return read_more();
  on_header();
}

void Session::on_header() {
  ++service_.counters().received;
  counted_ = true;
  begun_ = Clock::now();
  const auto& message = parser_->get();
  method_ = view_of(message.method_string());
  target_ = view_of(message.target());
  authorization_ = view_of(message[http::field::authorization]);
  host_ = view_of(message[http::field::host]);
  keep_alive_ = message.keep_alive() && message.version() >= 11;
  head_only_ = method_ == "HEAD";
  request_ = Request();
  request_.loop = &loop_.context;
  request_.method = method_;
  const std::size_t question = target_.find('?');
  request_.target = std::string_view(target_).substr(0, question);
  if (question != std::string::npos) request_.query = std::string_view(target_).substr(question + 1);
  request_.authorization = authorization_;
  request_.host = host_;
  const std::string_view json_bytes = view_of(message["Inference-Header-Content-Length"]);
  if (!json_bytes.empty()) {
    std::size_t value = 0;
    const auto [end, error] =
        std::from_chars(json_bytes.data(), json_bytes.data() + json_bytes.size(), value);
    if (error != std::errc() || end != json_bytes.data() + json_bytes.size())
      return refuse_and_close(problem(
          400,
          fmt::format("Inference-Header-Content-Length is '{}', which is not a number of bytes", json_bytes)));
    request_.json_bytes = value;
  }
  if (message.count(http::field::host) > 1)
    return refuse_and_close(problem(400, "the request has several Host headers"));
  // Whoever may not ask, or asks for what is not there, need not be listened to.
  const auto length = parser_->content_length();
  const bool has_body = parser_->chunked() || (length && *length > 0);
  Reply refusal;
  if (has_body && service_.refuses(request_, refusal)) return refuse_and_close(std::move(refusal));
  const std::string_view encoding = view_of(message[http::field::content_encoding]);
  if (has_body && !encoding.empty() && encoding != "identity")
    return refuse_and_close(problem(
        415,
        fmt::format("the body is encoded as '{}'; send it as it is, without Content-Encoding", encoding)));
  const std::string_view coding = view_of(message[http::field::transfer_encoding]);
  if (!coding.empty() && !boost::beast::iequals(message[http::field::transfer_encoding], "chunked"))
    return refuse_and_close(
        problem(415, fmt::format("the body is transferred as '{}'; send it whole or chunked", coding)));
  if (length && *length > static_cast<std::uint64_t>(service_.limits().body_bytes))
    return refuse_and_close(
        problem(413, fmt::format("the body has {} bytes, a request may have {}; send it in parts", *length,
                                 service_.limits().body_bytes)));
  if (!has_body) {
    body_begin_ = body_size_ = 0;
    return on_body();
  }
  const std::string_view expectation = view_of(message[http::field::expect]);
  if (expectation.empty()) return begin_body();
  if (!boost::beast::iequals(message[http::field::expect], "100-continue"))
    return refuse_and_close(problem(417, "the only supported expectation is 100-continue"));
  static const std::string kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
  enter(State::body, service_.limits().body_seconds);
  asio::async_write(socket_, asio::buffer(kContinue), [self = shared_from_this()](Error error, std::size_t) {
    if (self->state_ != State::body) return;
    if (error) return self->close();
    self->begin_body();
  });
}

void Session::begin_body() {
  enter(State::body, service_.limits().body_seconds);
  const auto length = parser_->content_length();
  if (!length) return read_chunks();
  if (!reserve_body(static_cast<std::size_t>(*length)))
    return refuse_and_close(
        problem(503, "too many bytes of requests are in memory; try again later"));
  read_whole_body(static_cast<std::size_t>(*length));
}

// The rest of a body is on its way: a batch may wait for it a little.
void Session::arrive() {
  if (!std::exchange(arriving_, true)) service_.queue().arriving(1);
}

bool Session::reserve_body(std::size_t length) {
  auto& used = service_.counters().body_bytes;
  const auto size = static_cast<std::int64_t>(length);
  if (used.fetch_add(size) + size > service_.limits().memory_bytes) {
    used -= size;
    return false;
  }
  reserved_ += length;
  return true;
}

void Session::release_body() {
  service_.counters().body_bytes -= static_cast<std::int64_t>(reserved_);
  reserved_ = 0;
  body_size_ = 0;
  chunks_.reset();
  if (capacity_ > kKept) {
    memory_.reset();
    capacity_ = 0;
  }
}

// Straight into its place; binary tensors, which follow the JSON, begin at a multiple of 64 bytes.
void Session::read_whole_body(std::size_t length) {
  constexpr std::size_t kLine = 64;
  if (capacity_ < length + 2 * kLine) {
    capacity_ = length + 2 * kLine;
    memory_.reset(new char[capacity_]);
  }
  const auto place =
      reinterpret_cast<std::uintptr_t>(memory_.get()) + std::min(request_.json_bytes.value_or(0), length);
  body_begin_ = (kLine - place % kLine) % kLine;
  body_size_ = length;
  const std::size_t here = std::min(length, buffer_.size());
  std::memcpy(memory_.get() + body_begin_, buffer_.data().data(), here);
  buffer_.consume(here);
  if (here == length) return on_body();
  arrive();
  asio::async_read(socket_, asio::buffer(memory_.get() + body_begin_ + here, length - here),
                   [self = shared_from_this()](Error error, std::size_t) {
                     if (self->state_ != State::body) return;
                     if (error) return self->close();
                     self->on_body();
                   });
}

void Session::read_chunks() {
  if (!chunks_) {
    chunks_.emplace(std::move(*parser_));
    chunks_->body_limit(static_cast<std::uint64_t>(service_.limits().body_bytes));
    chunks_->eager(true);
  }
  for (;;) {
    Error error;
    const std::size_t used = buffer_.size() > 0 ? chunks_->put(buffer_.data(), error) : 0;
    buffer_.consume(used);
    if (error == http::error::body_limit)
      return refuse_and_close(problem(
          413, fmt::format("the body has more than the {} bytes that a request may have; send it in parts",
                           service_.limits().body_bytes)));
    if (error && error != http::error::need_more)
      return refuse_and_close(
          problem(400, fmt::format("the chunks of the body are broken: {}", error.message())));
    const std::size_t size = chunks_->get().body().size();
    if (size > reserved_ && !reserve_body(size - reserved_))
      return refuse_and_close(
          problem(503, "too many bytes of requests are in memory; try again later"));
    if (chunks_->is_done()) return on_body();
    if (used == 0 || buffer_.size() == 0) break;
  }
  arrive();
  socket_.async_read_some(buffer_.prepare(kPiece),
                          [self = shared_from_this()](Error error, std::size_t size) {
                            if (self->state_ != State::body) return;
                            if (error) return self->close();
                            self->buffer_.commit(size);
                            self->read_chunks();
                          });
}

void Session::on_body() {
  enter(State::answering, 0);
  request_.body = chunks_ ? std::string_view(chunks_->get().body())
                          : std::string_view(memory_.get() + body_begin_, body_size_);
  service_.counters().bytes_in += request_.body.size();
  if (std::exchange(arriving_, false)) service_.queue().arriving(-1);
  service_.handle(request_, [self = shared_from_this()](Reply reply) { self->respond(std::move(reply)); });
}

void Session::respond(Reply reply) {
  if (state_ == State::closed) return;  // by the end of the server
  const bool close_after = reply.close || !keep_alive_ || service_.draining();
  out_head_.clear();
  fmt::format_to(std::back_inserter(out_head_),
                 "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}{}\r\n", reply.status,
                 reason(reply.status), reply.type, reply.body.size(), reply.headers,
                 close_after ? "Connection: close\r\n" : "");
  out_body_ = std::move(reply.body);
  if (head_only_) out_body_.clear();
  enter(State::writing, service_.limits().write_seconds);
  const std::array<asio::const_buffer, 2> parts = {asio::buffer(out_head_), asio::buffer(out_body_)};
  asio::async_write(
      socket_, parts,
      [self = shared_from_this(), close_after, status = reply.status](Error error, std::size_t size) {
        auto& counters = self->service_.counters();
        counters.bytes_out += size;
        if (self->state_ != State::writing) return;
        if (error) return self->close();
        ++counters.answered;
        counters.count_status(status);
        self->counted_ = false;
        counters.seconds.add(std::chrono::duration<double>(Clock::now() - self->begun_).count());
        self->on_written(close_after);
      });
}

void Session::on_written(bool close_after) {
  release_body();
  if (out_body_.capacity() > kKept) out_body_ = std::string();
  if (!close_after) return next_request();
  linger();
}

void Session::refuse_and_close(Reply reply) {
  if (std::exchange(arriving_, false)) service_.queue().arriving(-1);
  reply.close = true;
  if (!counted_) {
    ++service_.counters().received;
    counted_ = true;
    begun_ = Clock::now();
  }
  if (state_ == State::header ||
      state_ == State::body) {  // a read may be under way: it must not come back here
    Error ignored;
    socket_.cancel(ignored);
  }
  enter(State::answering, 0);
  respond(std::move(reply));
}

// A close while the client is still sending would destroy the answer on its way: say that this is the end, and read
// what comes for a while.
void Session::linger() {
  if (state_ != State::lingering) {
    enter(State::lingering, service_.limits().linger_seconds);
    lingered_ = 0;
    Error ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  }
  buffer_.clear();
  socket_.async_read_some(buffer_.prepare(kPiece),
                          [self = shared_from_this()](Error error, std::size_t size) {
                            if (self->state_ != State::lingering) return;
                            self->lingered_ += size;
                            if (error || self->lingered_ > kMostLingered) return self->close();
                            self->linger();
                          });
}

void Session::close() {
  if (state_ == State::closed) return;
  if (std::exchange(arriving_, false)) service_.queue().arriving(-1);
  if (std::exchange(counted_, false)) ++service_.counters().abandoned;
  state_ = State::closed;
  Error ignored;
  socket_.close(ignored);
  service_.counters().body_bytes -= static_cast<std::int64_t>(std::exchange(reserved_, 0));
  ++service_.counters().closed;
  loop_.sessions.erase(shared_from_this());
}

}  // namespace lacuna::serve
